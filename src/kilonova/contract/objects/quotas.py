"""Quotas."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import WireObject, register


@register
class Quotas(WireObject):
    """Limits of a project or user."""

    VERSION = "1.3"
    fields: Any = {
        "project_id": t.String(nullable=True, default=None),
        "reservations": t.ListOfStrings(nullable=True, default=[]),
        "user_id": t.String(nullable=True, default=None),
    }
    METHODS = {
        "commit": "",
        "reserve": "expire=None, project_id=None, user_id=None, **deltas",
        "rollback": "",
    }
    CLASS_METHODS = {
        "check_deltas": "deltas, *count_args, **count_kwargs",
        "count": "resource, *args, **kwargs",
        "count_as_dict": "resource, *args, **kwargs",
        "create_limit": "project_id, resource, limit, user_id=None",
        "limit_check": "project_id=None, user_id=None, **values",
        "limit_check_project_and_user": "project_values=None, user_values=None, project_id=None, user_id=None",
        "update_limit": "project_id, resource, limit, user_id=None",
    }


@register
class QuotasNoOp(Quotas):
    """Quotas that limit nothing."""

    VERSION = "1.3"
    METHODS = {}
    CLASS_METHODS = {
        "count": "resource, *args, **kwargs",
        "count_as_dict": "resource, *args, **kwargs",
        "create_limit": "project_id, resource, limit, user_id=None",
        "limit_check": "project_id=None, user_id=None, **values",
        "limit_check_project_and_user": "project_values=None, user_values=None, project_id=None, user_id=None",
        "update_limit": "project_id, resource, limit, user_id=None",
    }
