"""What filters and weighers are asked about: one server's request, with what was looked up for it."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from typing import Any

from kilonova.contract import objects
from kilonova.scheduler.candidates import field
from kilonova.scheduler.groups import Group
from kilonova.scheduler.snapshot.host import Host
from kilonova.scheduler.wishes import Wishes


@dataclasses.dataclass
class Request:
    """`candidates`: {node uuid: allocation requests that are still possible there}; filters may thin them out.

    `limits`: {node uuid: what the compute host must not exceed}, set by filters. `strangers`: servers that hints name
    and that are none of the caller's.
    """

    spec: objects.RequestSpec
    instance_uuid: str
    group: Group | None = None
    candidates: dict[str, list[dict[str, Any]]] = dataclasses.field(default_factory=dict)
    limits: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    strangers: frozenset[str] = frozenset()
    check_only: bool = False
    """A rebuild: the server stays where it is, nothing is claimed."""

    @functools.cached_property
    def wishes(self) -> Wishes:
        image: Any = field(self.spec, "image")
        return Wishes(self.spec.flavor, image)

    @functools.cached_property
    def hints(self) -> Mapping[str, list[str] | str]:
        found: Any = field(self.spec, "scheduler_hints")
        return found or {}

    def hint(self, name: str, otherwise: str | None = None) -> str | None:
        """The first value of a scheduler hint."""
        values = self.hints.get(name)
        if isinstance(values, str):
            return values
        return values[0] if values else otherwise

    def hint_list(self, name: str) -> list[str]:
        """All values of a scheduler hint; a JSON list in the first one counts as several."""
        values = self.hints.get(name) or []
        if isinstance(values, str):
            values = [values]
        if len(values) == 1 and values[0].startswith("["):
            return _listed(values[0])
        return list(values)

    def named_servers(self, hint: str) -> list[str]:
        """The servers that a hint names, as far as they are there for the caller."""
        return [uuid for uuid in self.hint_list(hint) if uuid not in self.strangers]

    @property
    def image_id(self) -> str | None:
        image: Any = field(self.spec, "image")
        return image.id if image is not None and image.obj_attr_is_set("id") else None

    def pci_requests(self) -> list[objects.InstancePCIRequest]:
        found: Any = field(self.spec, "pci_requests")
        return list(found.requests) if found is not None and found.requests else []

    def viable(self, host: Host) -> list[dict[str, Any]]:
        """Allocation requests that are still possible on a host."""
        return self.candidates.get(host.uuid, [])


def _listed(text: str) -> list[str]:
    """The members of a JSON list; what is none stands for itself."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    return [str(each) for each in found]
