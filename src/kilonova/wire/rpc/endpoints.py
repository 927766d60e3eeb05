"""What a server offers: the methods of an interface, each carried out by a handler or answered with a clear error."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kilonova.contract import exceptions
from kilonova.contract.rpc import baseapi, conductor
from kilonova.contract.rpc.table import Api, Served, version_tuple

LOG = logging.getLogger(__name__)

Method = Callable[..., Any]

SERVICE_NAME = "kilonova"
"""What our services say they are when they are pinged; Nova's name their kind ("conductor")."""


class Endpoint:
    """One interface as served: `methods` by name, called with the context and keyword arguments."""

    def __init__(self, api: Api, handlers: Sequence[object]) -> None:
        self.api = api
        self.methods: Mapping[str, Method] = {served.name: _bound(api, served, handlers) for served in api.served}

    def understands(self, namespace: str | None, version: str) -> bool:
        """Whether a message of that namespace and version is for this endpoint: same major, no newer minor."""
        ours, theirs = version_tuple(self.api.version), version_tuple(version)
        return namespace == self.api.namespace and ours[0] == theirs[0] and theirs[1:] <= ours[1:]

    def expects(self, method: str, exc: Exception) -> bool:
        """Whether that is an expected answer of the method, nothing for an operator to look at.

        The object service answers its callers with whatever the contract names: they know what to make of it.
        """
        if self.api is conductor.API and isinstance(exc, exceptions.NovaException):
            return True
        served = self.api.served_by_name.get(method)
        return served is not None and type(exc).__name__ in served.expected


class Base:
    """What every service answers (`baseapi`)."""

    def ping(self, ctxt: Any, *, arg: Any) -> dict[str, Any]:
        """Give the argument back."""
        return {"service": SERVICE_NAME, "arg": arg}

    def get_backdoor_port(self, ctxt: Any) -> None:
        """Nova answers the port of its debugging console; we have none."""


def endpoints(apis: Sequence[Api], handlers: Sequence[object]) -> list[Endpoint]:
    """The endpoints of a server, with the base interface."""
    return [Endpoint(api, handlers) for api in apis] + [Endpoint(baseapi.API, [Base()])]


def _bound(api: Api, served: Served, handlers: Sequence[object]) -> Method:
    for handler in handlers:
        found = getattr(handler, served.name, None)
        if callable(found):
            return _with_defaults(api, found, served)
    return _refuse(api, served)


def _with_defaults(api: Api, method: Method, served: Served) -> Method:
    """The method under the arguments of `served`, with those of the present interface where that one is newer."""
    present = api.newer.served_by_name[served.name] if api.newer is not None else served
    defaults = {a.name: a.default for a in (*present.arguments, *served.arguments) if a.default is not ...}
    if not defaults and not served.newer:
        return method

    def call(ctxt: Any, **kwargs: Any) -> Any:
        values = defaults | kwargs
        for older, newer in served.newer.items():
            value = values.pop(older, None)
            if newer is not None:
                values[newer] = value
        return method(ctxt, **values)

    return call


def _refuse(api: Api, served: Served) -> Method:
    def refuse(ctxt: Any, **kwargs: Any) -> Any:
        LOG.error("%s was asked for, which this service does not have", served.name)
        raise exceptions.NovaException(f"{api.name}.{served.name} is not available in this service.")

    return refuse
