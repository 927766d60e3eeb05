"""How calls on the bus are declared: who is asked, with which arguments, in which version.

A `Method` is one method of a client: its own arguments, where it goes, and the messages (`sent`) it may become, newest
first, since an older server understands less. `Served` is one method of a server. Source: Nova's RPC interfaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import msgspec

from kilonova.contract.objects.signatures import Argument, arguments


def version_tuple(text: str) -> tuple[int, ...]:
    """`"6.10"` as `(6, 10)`."""
    return tuple(int(part) for part in text.split("."))


class Sent(msgspec.Struct, frozen=True, dict=True):
    """One message that a method may become.

    `args`: names, comma separated; empty means those of the message before it. `up_to`: highest version cap at which
    it is sent; None for the newest. `source`: argument -> the client's argument under another name. `refuses`:
    the exception when nothing fits the cap, or, beside a version, when one of the arguments `guarded` (empty: any that
    is left out) has a value. `forms`: argument -> the name of its older form (wire.rpc.forms).
    """

    version: str | None = None
    args: str = ""
    up_to: str | None = None
    topic: str | None = None
    source: Mapping[str, str] = msgspec.field(default_factory=dict)
    refuses: str | None = None
    guarded: tuple[str, ...] = ()
    forms: Mapping[str, str] = msgspec.field(default_factory=dict)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the arguments, in order."""
        return tuple(name.strip() for name in self.args.split(",") if name.strip())


class Method(msgspec.Struct, frozen=True, dict=True):
    """One method of a client.

    `client`: its signature. `host`: the expression that gives the server to ask (`host`, `instance.host` ...), None for
    any. `call`: waits for an answer; `either`: the argument that decides between a cast (true) and a call. `long`: the
    answer may take long_rpc_timeout.
    """

    name: str
    client: str
    sent: tuple[Sent, ...]
    host: str | None = None
    call: bool = False
    either: str | None = None
    long: bool = False
    fanout: bool = False

    def __post_init__(self) -> None:
        filled: list[Sent] = []
        for message in self.sent:
            if message.version is not None and not message.args and filled:
                message = msgspec.structs.replace(message, args=filled[-1].args)
            filled.append(message)
        msgspec.structs.force_setattr(self, "sent", tuple(filled))

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """The client's arguments."""
        return arguments(self.client)

    def message(self, cap: str | None) -> Sent:
        """What is sent under a version cap (None: no cap)."""
        if cap is None:
            return self.sent[0]
        limit = version_tuple(cap)
        fitting = [s for s in self.sent if s.up_to is None or version_tuple(s.up_to) >= limit]
        return fitting[-1]


class Served(msgspec.Struct, frozen=True, dict=True):
    """One method of a server: its arguments (without the context) and the exceptions that are ordinary answers.

    `newer`: for a method of an older version, argument -> its name in the present one, None when it is gone.
    """

    name: str
    args: str
    expected: tuple[str, ...] = ()
    newer: Mapping[str, str | None] = msgspec.field(default_factory=dict)

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments, with their defaults."""
        return arguments(self.args)


class Api(msgspec.Struct, frozen=True, dict=True):
    """One interface: where it is served, in which version and under which namespace.

    `newer`: of an older major version, the present interface, whose methods carry its calls out.
    """

    name: str
    topic: str
    version: str
    namespace: str | None
    methods: tuple[Method, ...]
    served: tuple[Served, ...]
    alt_topic: str | None = None
    aliases: Mapping[str, str] = msgspec.field(default_factory=dict)
    by_service_version: Mapping[int, str] = msgspec.field(default_factory=dict)
    newer: Api | None = None

    @cached_property
    def by_name(self) -> Mapping[str, Method]:
        """The client's methods by name."""
        return {method.name: method for method in self.methods}

    @cached_property
    def served_by_name(self) -> Mapping[str, Served]:
        """The server's methods by name."""
        return {served.name: served for served in self.served}
