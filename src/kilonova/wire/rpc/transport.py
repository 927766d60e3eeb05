"""What a message bus does for us: carry a message to a topic, one server or all, and bring back the answer."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from kilonova.contract.context import RequestContext
from kilonova.wire.rpc.endpoints import Endpoint
from kilonova.wire.rpc.serializer import Decoder


class Address(msgspec.Struct, frozen=True):
    """Where a message goes: any server of the topic, the named one, or (`fanout`) all."""

    topic: str
    server: str | None = None
    fanout: bool = False


class Message(msgspec.Struct, frozen=True):
    """A method with its arguments (wire objects allowed), and the interface version it belongs to."""

    method: str
    args: dict[str, Any]
    version: str
    namespace: str | None = None


class RpcServer(Protocol):
    """Serves one topic under one server name."""

    def start(self) -> None:
        """Begin to take messages."""

    def stop(self) -> None:
        """Take no more messages; those under way go on."""

    def wait(self, timeout: float | None = None) -> None:
        """Wait for the messages under way, at most `timeout` seconds where the transport can bound it."""


class Transport(abc.ABC):
    """One message bus."""

    @abc.abstractmethod
    def call(
        self, context: RequestContext, to: Address, message: Message, timeout: float, monitor: float | None = None
    ) -> Any:
        """Send and wait for the answer.

        `monitor`: the server must report that often (seconds) that it still works on it. Raises what the method raised,
        RpcTimeout, RpcUnreachable, RpcUnsupported, RpcRemoteError.
        """

    @abc.abstractmethod
    def cast(self, context: RequestContext, to: Address, message: Message) -> None:
        """Send and forget: it may get lost. Raises RpcUnreachable when the bus does not take it."""

    @abc.abstractmethod
    def server(self, topic: str, name: str, endpoints: Sequence[Endpoint], decoder: Decoder) -> RpcServer:
        """A server, not started yet."""

    def close(self) -> None:  # noqa: B027
        """Give up connections; nothing may be sent afterwards."""
