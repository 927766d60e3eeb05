"""Clients of the services, derived from the declared interfaces.

`ComputeClient(bus).stop_instance(ctxt, instance=i)` checks the arguments, chooses the message that the version cap
allows, and casts or calls as declared. Where the interface asks the instance's host, `host=` names another.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext
from kilonova.contract.rpc import baseapi, compute, compute_task, conductor, scheduler
from kilonova.contract.rpc.table import Api, Method, Sent, version_tuple
from kilonova.wire.rpc.bus import Bus
from kilonova.wire.rpc.transport import Address, Message


class Client:
    """Methods of one interface. `cap`: highest version to send, a number or a release name; None for the newest."""

    API: Api
    LEVEL: str | None = None
    """The option of [upgrade_levels] that gives the cap by default."""

    def __init__(self, bus: Bus, cap: str | None = None) -> None:
        self.bus = bus
        self.cap = self._cap(cap)

    def _cap(self, cap: str | None) -> str | None:
        if cap is None and self.LEVEL is not None:
            cap = self.bus.conf.upgrade_levels[self.LEVEL]
        if cap == "auto":
            cap = self.bus.compute_cap() if self.bus.compute_cap is not None else None
        return self.API.aliases.get(cap, cap) if cap else None

    def at(self, url: str | None) -> Any:
        """The same client on the bus of a cell."""
        return type(self)(self.bus.at(url), self.cap)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = self.API.by_name.get(name)
        if method is None:
            raise AttributeError(f"{self.API.name} has no method {name}")
        return functools.partial(self._send, method)

    def _send(self, method: Method, ctxt: RequestContext, *args: Any, **kwargs: Any) -> Any:
        values = _bind(method, args, kwargs)
        message = method.message(self.cap)
        sent = self._args(method, message, values)
        server = values.pop("$server", None)
        address = Address(message.topic or self.API.topic, server, method.fanout)
        packed = Message(method.name, sent, str(message.version), self.API.namespace)
        if not _calls(method, values):
            return self.bus.cast(ctxt, address, packed)
        timeout, monitor = self._patience(method, values)
        return self.bus.call(ctxt, address, packed, timeout, monitor)

    def _args(self, method: Method, message: Sent, values: dict[str, Any]) -> dict[str, Any]:
        if message.version is None:
            raise _refusal(str(message.refuses), self.API, method)
        if message.legacy:
            raise _refusal("UnsupportedRPCVersion", self.API, method)
        if message.refuses is not None:
            newest = method.sent[0]
            left_out = {newest.source.get(n, n) for n in newest.names} - {
                message.source.get(n, n) for n in message.names
            }
            if any(values.get(name) for name in left_out):
                raise _refusal(message.refuses, self.API, method)
        return {name: values.get(message.source.get(name, name)) for name in message.names}

    def _patience(self, method: Method, values: dict[str, Any]) -> tuple[float | None, float | None]:
        if not method.long:
            return None, None
        conf = self.bus.conf
        return conf.long_rpc_timeout, conf.rpc_response_timeout

    def can_send(self, version: str) -> bool:
        """Whether the cap allows that version."""
        if self.cap is None:
            return True
        cap, wanted = version_tuple(self.cap), version_tuple(version)
        return cap[0] == wanted[0] and cap >= wanted


class ComputeClient(Client):
    """Calls to compute hosts."""

    API = compute.API
    LEVEL = "compute"


class ConductorClient(Client):
    """The object service."""

    API = conductor.API
    LEVEL = "conductor"


class ComputeTaskClient(Client):
    """Multi-step operations, driven by the conductor."""

    API = compute_task.API


class SchedulerClient(Client):
    """Choosing hosts, and telling the scheduler about changes."""

    API = scheduler.API
    LEVEL = "scheduler"


class BaseClient(Client):
    """Whether a service answers; `topic` is its topic."""

    API = baseapi.API
    LEVEL = "baseapi"

    def __init__(self, bus: Bus, topic: str, cap: str | None = None) -> None:
        super().__init__(bus, cap)
        self.topic = topic

    def ping(self, ctxt: RequestContext, arg: Any, timeout: float | None = None, host: str | None = None) -> Any:
        """The argument, sent back by the service."""
        message = Message("ping", {"arg": arg}, "1.0", self.API.namespace)
        return self.bus.call(ctxt, Address(self.topic, host), message, timeout)


def _bind(method: Method, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Values by the client's argument names, and under `$server` whom to ask. Raises TypeError as a function would."""
    declared = method.arguments
    if len(args) > len(declared):
        raise TypeError(f"{method.name} takes {len(declared)} arguments, not {len(args)}")
    values = dict(zip((a.name for a in declared), args, strict=False))
    names = {a.name for a in declared}
    override = kwargs.pop("host", None) if "host" not in names else None
    if unknown := set(kwargs) - names:
        raise TypeError(f"{method.name} does not take {', '.join(sorted(unknown))}")
    values |= kwargs
    for argument in declared:
        if argument.name not in values:
            if argument.default is ...:
                raise TypeError(f"{method.name} needs {argument.name}")
            values[argument.name] = argument.default
    values["$server"] = override or _server(method, values)
    return values


def _server(method: Method, values: dict[str, Any]) -> str | None:
    if method.host is None:
        return None
    name, _, attribute = method.host.partition(".")
    target = values[name[:-3]][0] if name.endswith("[0]") else values[name]
    if attribute:
        target = getattr(target, attribute)
    if target is None and (instance := values.get("instance") or (values.get("instances") or [None])[0]) is not None:
        target = instance.host
    if target is None:
        raise exceptions.NovaException(f"No compute host specified for {method.name}")
    return str(target)


def _calls(method: Method, values: dict[str, Any]) -> bool:
    return not values[method.either] if method.either else method.call


def _refusal(kind: str, api: Api, method: Method) -> Exception:
    known: Any = getattr(exceptions, kind, exceptions.UnsupportedRPCVersion)
    raised: Exception = known(f"{api.name}.{method.name} cannot be said to services of the oldest version here.")
    return raised
