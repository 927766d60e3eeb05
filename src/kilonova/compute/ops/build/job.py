"""A build under way: its request, and what it has made so far."""

from __future__ import annotations

import base64
import binascii
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from kilonova.compute import network
from kilonova.compute.runner import Work
from kilonova.contract import exceptions, objects
from kilonova.contract.states import Task
from kilonova.virt.driver import BlockDevices

ACTIVE, RESCHEDULED, GONE = "active", "rescheduled", "gone"
REFUSED = "refused"
"""It was not ours to begin."""
OVERTAKEN = "overtaken"
"""Somebody else (the conductor, an operator) decided about the server while it was built."""


@dataclasses.dataclass
class Build:
    work: Work
    instance: objects.Instance
    mappings: Sequence[objects.BlockDeviceMapping]
    network_info: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    disks: BlockDevices = dataclasses.field(default_factory=BlockDevices)
    attaching: bool = False
    """True once volumes may have been asked for that are not on record."""
    spawning: bool = False
    """True once the driver was asked to make the guest."""
    task: Any = Task.SCHEDULING
    """The task state (or states) that the record has unless somebody else took the server over, or has built it: a cast
    may wait for as long as its host is down."""

    def save(self, task: str | None) -> None:
        """Write what changed, and the next task state, by compare-and-swap."""
        self.instance.task_state = task
        agent, ctxt = self.work.agent, self.work.ctxt
        with agent.network.saving(ctxt, self.instance):
            agent.store.save(ctxt, self.instance, expected=self.task)
        if self.network_info:
            # An event may have brought something newer meanwhile.
            self.network_info = network.cached(self.instance)
        self.task = task

    @classmethod
    def of(cls, work: Work) -> Build:
        return cls(work, work.instance, as_list(work.args.get("block_device_mapping")))

    def arg(self, name: str) -> Any:
        return self.work.args.get(name)

    @property
    def filter_properties(self) -> dict[str, Any]:
        return dict(self.arg("filter_properties") or {})

    @property
    def first(self) -> bool:
        """Whether nobody can have made anything for the server yet: no earlier run of this agent, no other host."""
        tries = int((self.filter_properties.get("retry") or {}).get("num_attempts", 1))
        return not self.work.resumed and tries <= 1 and "network_allocated" not in self.instance.system_metadata

    @property
    def hints(self) -> Mapping[str, Any]:
        spec = self.arg("request_spec")
        if spec is not None and spec.get("scheduler_hints"):
            return dict(spec.scheduler_hints)
        return self.filter_properties.get("scheduler_hints") or {}

    @property
    def request_mapping(self) -> dict[str, list[str]]:
        """Which providers serve which port with a resource request."""
        spec = self.arg("request_spec")
        groups = (spec.get("requested_resources") or []) if spec is not None else []
        return {g.requester_id: list(g.provider_uuids) for g in groups if g.get("requester_id")}

    def security_group_names(self) -> list[str]:
        """The groups asked for: names or ids, in the shapes that API servers send."""
        wanted = self.arg("security_groups")
        return [each if isinstance(each, str) else each.get("name") or each["uuid"] for each in as_list(wanted)]

    def files(self) -> list[tuple[str, bytes]]:
        """Files to put into the guest. Raises Base64Exception."""
        return [(path, _decoded(path, content)) for path, content in self.arg("injected_files") or ()]


def as_list(given: Any) -> list[Any]:
    return list(getattr(given, "objects", given) or ())


def _decoded(path: str, content: str | bytes) -> bytes:
    try:
        return base64.b64decode(content, validate=False)
    except (binascii.Error, ValueError) as exc:
        raise exceptions.Base64Exception(path=path) from exc
