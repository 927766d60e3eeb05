"""Request group."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import Ephemeral, WireObject, register


@register
class RequestGroup(Ephemeral):
    """Resources and traits that one resource provider (or several) must have."""

    VERSION = "1.3"
    fields: Any = {
        "aggregates": t.ListOfListsOfStrings(default=[]),
        "forbidden_aggregates": t.SetOfStrings(default=set()),
        "forbidden_traits": t.SetOfStrings(default=set()),
        "in_tree": t.UUID(nullable=True, default=None),
        "provider_uuids": t.ListOfUUID(default=[]),
        "requester_id": t.String(nullable=True, default=None),
        "required_traits": t.SetOfStrings(default=set()),
        "resources": t.DictOfIntegers(default={}),
        "use_same_provider": t.Boolean(default=True),
    }
    REMOVED = {
        "forbidden_aggregates": "1.2",
        "in_tree": "1.1",
        "provider_uuids": "1.0",
        "requester_id": "1.0",
    }


@register
class RequestLevelParams(WireObject):
    """What an allocation request asks of the provider tree as a whole."""

    VERSION = "1.1"
    fields: Any = {
        "root_forbidden": t.SetOfStrings(default=set()),
        "root_required": t.SetOfStrings(default=set()),
        "same_subtree": t.ListOfListsOfStrings(default=[]),
    }
    REMOVED = {
        "same_subtree": "1.0",
    }
