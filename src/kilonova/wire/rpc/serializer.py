"""Between Python values and what goes over the bus: wire objects as primitives, the context as its dict.

A receiver that meets an object newer than it knows has the sender's side turn it into the version it knows: it asks the
conductor (`object_backport_versions`), as every Nova service does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kilonova.contract.context import RequestContext
from kilonova.contract.objects.base import IncompatibleObjectVersion, WireObject, manifest

_NAME = "nova_object.name"
_VERSION = "nova_object.version"


class Backport(Protocol):
    """Ask whoever knows the newest versions for an object in versions that we know."""

    def __call__(self, context: RequestContext, primitive: dict[str, Any], versions: Mapping[str, str]) -> Any: ...


def encode(value: Any) -> Any:
    """A value with every wire object in it turned into a primitive; sets become lists."""
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, WireObject):
        return value.obj_to_primitive()
    if isinstance(value, list | tuple | set | frozenset):
        return [encode(item) for item in value]
    return value


class Decoder:
    """Turns primitives of wire objects back into objects."""

    def __init__(self, backport: Backport | None = None) -> None:
        self._backport = backport

    def decode(self, context: RequestContext, value: Any) -> Any:
        """A received value, with objects. Raises IncompatibleObjectVersion when an object cannot be understood."""
        if isinstance(value, dict):
            if _NAME in value:
                return self._object(context, value)
            return {key: self.decode(context, item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.decode(context, item) for item in value]
        return value

    def _object(self, context: RequestContext, primitive: dict[str, Any]) -> Any:
        try:
            return WireObject.obj_from_primitive(primitive, context=context)
        except IncompatibleObjectVersion:
            version = primitive[_VERSION]
            if version.count(".") == 2:
                # A third number never changes what is in the object.
                return self._object(context, primitive | {_VERSION: version.rpartition(".")[0]})
            if self._backport is None:
                raise
            return self._backport(context, primitive, manifest(primitive[_NAME]))


def encode_context(context: RequestContext) -> dict[str, Any]:
    """The context as it travels."""
    return context.to_dict()


def decode_context(values: Mapping[str, Any]) -> RequestContext:
    """The context that came."""
    return RequestContext.from_dict(values)


Encode = Callable[[Any], Any]
