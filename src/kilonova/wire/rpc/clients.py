"""Clients of the services, derived from the declared interfaces.

`ComputeClient(bus).stop_instance(ctxt, instance=i)` checks the arguments, chooses the message that the version cap
allows, and casts or calls as declared. Where the interface asks the instance's host, `host=` names another.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any

from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext
from kilonova.contract.rpc import baseapi, compute, compute_task, conductor, scheduler
from kilonova.contract.rpc.table import Api, Method, Sent, version_tuple
from kilonova.wire.rpc import forms
from kilonova.wire.rpc.bus import Bus
from kilonova.wire.rpc.transport import Address, Message

HEARTBEAT_SECONDS = 60
"""How often a compute host that was given longer than this for an answer must say that it still works on it."""


class Client:
    """Methods of one interface. `cap`: highest version to send, a number or a release name; by default the option's."""

    API: Api
    LEVEL: str | None = None
    """The option of [upgrade_levels] that gives the cap by default."""
    MONITOR: int | None = None
    """Seconds: the monitor of calls that have none of their own and may take longer."""

    def __init__(self, bus: Bus, cap: str | None = None) -> None:
        self.bus = bus
        self._given = cap

    @property
    def cap(self) -> str | None:
        """Highest version to send now; None for no bound. Raises ValueError for what is no version and no release."""
        cap = self._given
        if cap is None and self.LEVEL is not None:
            cap = self.bus.conf.upgrade_levels[self.LEVEL]
        if cap == "auto":
            cap = self.bus.compute_cap() if self.bus.compute_cap is not None else None
        return version_of_level(self.API, cap) if cap else None

    def at(self, url: str | None) -> Any:
        """The same client on the bus of a cell."""
        return type(self)(self.bus.at(url), self._given)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = self.API.by_name.get(name)
        if method is None:
            raise AttributeError(f"{self.API.name} has no method {name}")
        return functools.partial(self._send, method)

    def _send(self, method: Method, ctxt: RequestContext, *args: Any, **kwargs: Any) -> Any:
        values = _bind(method, args, kwargs)
        message = self._message(method)
        sent = self._args(method, message, values)
        server = values.pop("$server", None)
        address = Address(message.topic or self.API.topic, server, method.fanout)
        packed = Message(method.name, sent, str(message.version), self.API.namespace)
        if not _calls(method, values):
            return self.bus.cast(ctxt, address, packed)
        timeout, monitor = self._patience(method)
        return self.bus.call(ctxt, address, packed, timeout, monitor)

    def _message(self, method: Method) -> Sent:
        """Raises UnsupportedRPCVersion when even the oldest form of the message is newer than the cap."""
        cap = self.cap
        message = method.message(cap)
        if cap is not None and message.version is not None and not _fits(cap, message.version):
            raise _refusal("UnsupportedRPCVersion", self.API, method)
        return message

    def _args(self, method: Method, message: Sent, values: dict[str, Any]) -> dict[str, Any]:
        if message.version is None:
            raise _refusal(str(message.refuses), self.API, method)
        if message.refuses is not None and any(values.get(name) for name in _guarded(method, message)):
            raise _refusal(message.refuses, self.API, method)
        return {name: _said(message, name, values) for name in message.names}

    def _patience(self, method: Method) -> tuple[float | None, float | None]:
        conf = self.bus.conf
        if method.long:
            return conf.long_rpc_timeout, conf.rpc_response_timeout
        monitored = self.MONITOR is not None and conf.rpc_response_timeout > self.MONITOR
        return None, self.MONITOR if monitored else None


class ComputeClient(Client):
    """Calls to compute hosts."""

    API = compute.API
    LEVEL = "compute"
    MONITOR = HEARTBEAT_SECONDS


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


def version_of_level(api: Api, level: str) -> str:
    """A version as a number, from one or from a release name. Raises ValueError for anything else."""
    version = api.aliases.get(level, level)
    try:
        version_tuple(version)
    except ValueError:
        raise ValueError(
            f"[upgrade_levels] {level!r} is neither a version of the {api.name} interface nor a release that it knows"
        ) from None
    return version


def _fits(cap: str, version: str) -> bool:
    limit, wanted = version_tuple(cap), version_tuple(version)
    return limit[0] == wanted[0] and limit >= wanted


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


def _guarded(method: Method, message: Sent) -> Collection[str]:
    """The client's arguments that an older message cannot carry."""
    if message.guarded:
        return message.guarded
    newest = method.sent[0]
    return {newest.source.get(n, n) for n in newest.names} - {message.source.get(n, n) for n in message.names}


def _said(message: Sent, name: str, values: Mapping[str, Any]) -> Any:
    value = values.get(message.source.get(name, name))
    form = message.forms.get(name)
    return forms.FORMS[form](value) if form else value


def _calls(method: Method, values: dict[str, Any]) -> bool:
    return not values[method.either] if method.either else method.call


def _refusal(kind: str, api: Api, method: Method) -> Exception:
    known: Any = getattr(exceptions, kind, exceptions.UnsupportedRPCVersion)
    raised: Exception = known(f"{api.name}.{method.name} cannot be said to services of the oldest version here.")
    return raised
