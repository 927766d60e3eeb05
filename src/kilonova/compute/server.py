"""The RPC methods of a compute host (interface 6.x). What is not built answers with a clear error."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any

from kilonova.compute import disconnection, external, refusal
from kilonova.compute.agent import Agent
from kilonova.compute.lanes import VOLUME_KIND, then
from kilonova.compute.operations import OPERATIONS
from kilonova.compute.runner import Runner
from kilonova.contract import objects
from kilonova.contract.context import RequestContext
from kilonova.contract.rpc import compute as table

Answer = concurrent.futures.Future[Any]
"""What the caller gets once it is there; no thread of the bus waits for it."""

SERVED = frozenset(served.name for served in table.API.served)


class Handlers:
    """One host's methods. What may take long is queued, and its caller waits for the future that is returned."""

    def __init__(self, agent: Agent, runner: Runner) -> None:
        self._agent = agent
        self._runner = runner

    def build_and_run_instance(self, ctxt: RequestContext, *, instance: objects.Instance, **args: Any) -> None:
        self._queue("build_and_run_instance", ctxt, instance, args)

    def terminate_instance(self, ctxt: RequestContext, *, instance: objects.Instance, **args: Any) -> None:
        self._queue("terminate_instance", ctxt, instance, args)

    def start_instance(self, ctxt: RequestContext, *, instance: objects.Instance) -> None:
        self._queue("start_instance", ctxt, instance, {})

    def reboot_instance(self, ctxt: RequestContext, *, instance: objects.Instance, **args: Any) -> None:
        self._queue("reboot_instance", ctxt, instance, args)

    def stop_instance(self, ctxt: RequestContext, *, instance: objects.Instance, clean_shutdown: bool = True) -> Answer:
        """Sent as a cast, or as a call whose caller goes on once the guest is off."""
        stopping = self._queue("stop_instance", ctxt, instance, {"clean_shutdown": clean_shutdown})
        return then(stopping, lambda: None)

    def external_instance_event(
        self,
        ctxt: RequestContext,
        *,
        instances: list[objects.Instance],
        events: list[objects.InstanceExternalEvent],
    ) -> None:
        external.handle(self._agent, ctxt, instances, events)

    def remove_volume_connection(
        self, ctxt: RequestContext, *, volume_id: str, instance: objects.Instance, delete_attachment: bool
    ) -> Answer:
        """In turn with what else happens to the guest. Raises what `disconnection.disconnect` does."""

        def job(turn: object) -> None:
            disconnection.disconnect(self._agent, ctxt, instance, volume_id, delete_attachment)

        return self._agent.lanes.submit(instance.uuid, job, kind=VOLUME_KIND)

    def get_console_output(
        self, ctxt: RequestContext, *, instance: objects.Instance, tail_length: int | str | None
    ) -> str:
        """The last lines of the guest's serial log (all: None). Raises ConsoleNotAvailable, InstanceNotFound."""
        return tail(self._agent.driver.console_output(instance), tail_length).decode("ascii", "replace")

    def get_host_uptime(self, ctxt: RequestContext) -> str:
        """Raises NotImplementedError where the driver has none."""
        return self._agent.driver.uptime()

    def set_host_enabled(self, ctxt: RequestContext, *, enabled: bool) -> Answer:
        """Tell Placement whether schedulers may use this host. The word is the contract's."""

        def job(turn: object) -> str:
            self._agent.tracker.set_disabled(ctxt, disabled=not enabled)
            return "enabled" if enabled else "disabled"

        return self._agent.lanes.submit("host", job)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Methods of the contract that are not built."""
        if name not in SERVED:
            raise AttributeError(name)

        def refuse(ctxt: RequestContext, **args: Any) -> Answer:
            return refusal.refuse(self._runner, name, ctxt, args)

        return refuse

    def _queue(self, method: str, ctxt: RequestContext, instance: objects.Instance, args: dict[str, Any]) -> Answer:
        return self._runner.accept(OPERATIONS[method], ctxt, instance, {"instance": instance, **args})


def tail(log: bytes, lines: int | str | None) -> bytes:
    """The last lines; none for 0 or what is no number."""
    if lines is None:
        return log
    try:
        count = int(lines)
    except ValueError:
        count = 0
    return b"\n".join(log.split(b"\n")[-count:]) if count else b""
