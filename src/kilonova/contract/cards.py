"""What is said about a route and about an operation on a server: data without behaviour.

A `Route` is one REST request. An `Op` is an operation: in which states a server takes it, what it changes at once and
which instance action records it. `contract.nouns` and `contract.ops` hold them, `api` binds handlers to them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from kilonova.contract.fields import NOTHING, ByVersion, Compiled, Field, Object, Shape
from kilonova.contract.microversions import ALL, LEGACY, Versions

Codes = int | tuple[tuple[int, Versions], ...]
Errors = tuple[int, ...] | tuple[tuple[tuple[int, ...], Versions], ...]


@dataclass(frozen=True, kw_only=True)
class Route:
    """A REST request: method, path template and, for a ``.../action`` path, the key of the body that names it.

    ``success`` is a code, or codes per range of microversions. ``policies`` are asked before anything is done,
    ``soft`` ones only hide data or widen what is shown. A shape that is None is not checked. ``makes``: the last
    parameter of the path names what the request makes, so that a wrong one is not what cannot be found.
    """

    method: str
    path: str
    action: str | None = None
    versions: Versions = ALL
    success: Codes = 200
    errors: Errors = ()
    policies: tuple[str, ...] = ()
    soft: tuple[str, ...] = ()
    query: Shape | None = None
    body: Shape | None = None
    response: Shape | None = None
    makes: bool = False

    @property
    def key(self) -> str:
        return f"{self.method} {self.path}" + (f" #{self.action}" if self.action else "")

    def status(self, version: int) -> int:
        """The code of success in a microversion (the first that holds, where a handler chooses)."""
        if isinstance(self.success, int):
            return self.success
        return next(code for code, versions in self.success if version in versions)

    @cached_property
    def compiled(self) -> Mapping[str, Compiled]:
        """The shapes by part (``query``, ``body``, ``response``), ready to be compiled per microversion."""
        shapes = {"query": self.query, "body": self.body, "response": self.response}
        return {part: Compiled(shape) for part, shape in shapes.items() if shape is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """When a server takes an operation. A set of states that is None allows every one; ``{None}`` is "no task".

    ``other`` names further checks: what about the server, besides its state, forbids the operation.
    """

    vm: frozenset[str] | None = None
    task: frozenset[str | None] | None = frozenset({None})
    any_state: bool = False
    rejected_task: frozenset[str] = frozenset()
    must_have_launched: bool = True
    lock_checked: bool = True
    host_required: bool = False
    host_must_be_up: bool = False
    other: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """An operation on a server.

    ``task`` is the task state that acceptance sets, ``action`` the instance action that records it, ``rpc`` the
    methods it sends. ``guards`` are by name, for routes under which several ways differ.
    """

    name: str
    routes: tuple[Route, ...]
    guards: Mapping[str, Guard] = field(default_factory=dict)
    task: str | None = None
    action: str | None = None
    rpc: tuple[str, ...] = ()

    @property
    def guard(self) -> Guard:
        """The one guard of an operation that has one."""
        (only,) = self.guards.values()
        return only


LEGACY_ONLY: Final = Versions(((LEGACY, LEGACY),))
_NO_VERSION: Final = Versions(())


def action(
    key: str,
    *policies: str,
    value: Shape | None = None,
    response: Shape = NOTHING,
    success: Codes = 202,
    errors: Errors = (),
    unchecked: Versions = _NO_VERSION,
) -> Route:
    """The route of a body action of a server: ``{key: value}``, in the ``unchecked`` versions any body."""
    body: Shape = Object(Field(key, {} if value is None else value, required=True))
    return Route(
        method="POST",
        path="/servers/{id}/action",
        action=key,
        policies=policies,
        body=ByVersion((unchecked, {}), (ALL, body)) if unchecked.ranges else body,
        response=response,
        success=success,
        errors=errors,
    )
