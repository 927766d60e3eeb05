"""Asking what is reached by a message bus alone: the `ping` of Nova's services and that of oslo.messaging."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kilonova.wire.rpc.bus import Bus

PATIENCE = 5.0
"""Seconds for an answer. The question is then dropped by the broker, too."""


@functools.cache
def bus(url: str, exchange: str = "nova") -> Bus:
    """One connection for all questions of this process; services of a kind share an exchange."""
    from kilonova import conf
    from kilonova.wire.rpc.bus import Bus

    made = Bus(conf.load(["--config-file", os.devnull]), url)
    made.conf.set_override("control_exchange", exchange)
    return made


def nova(url: str, topic: str, server: str) -> Callable[[], bool]:
    """Whether that server answers `ping` of the interface that every service of Nova's kind serves."""

    def ask() -> Any:
        from kilonova.contract import context
        from kilonova.wire.rpc.clients import BaseClient

        return BaseClient(bus(url), topic).ping(context.admin(), "", timeout=PATIENCE, host=server)

    return lambda: answered(ask)


def oslo(url: str, exchange: str, topic: str, server: str) -> Callable[[], bool]:
    """Whether a server with `rpc_ping_enabled` answers."""

    def ask() -> Any:
        from kilonova.contract import context
        from kilonova.wire.rpc.transport import Address, Message

        message = Message("oslo_rpc_server_ping", {}, "1.0")
        return bus(url, exchange).call(context.admin(), Address(topic, server), message, PATIENCE)

    return lambda: answered(ask)


def answered(ask: Callable[[], Any]) -> bool:
    """A refusal is an answer as well: somebody works there."""
    from kilonova.wire.rpc.errors import RPC_LOST, RpcError

    try:
        ask()
    except RPC_LOST:
        return False
    except RpcError:
        return True
    return True
