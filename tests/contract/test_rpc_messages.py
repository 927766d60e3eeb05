"""What leaves a client at every version cap, argument by argument: as the contract recorded it from Nova's clients."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
from oslo_config import cfg
from tests.contract import facts as novas

from kilonova.conf import default_rpc, upgrade_levels
from kilonova.contract import context, exceptions
from kilonova.wire.rpc import clients, forms
from kilonova.wire.rpc.bus import Bus
from kilonova.wire.rpc.transport import Address, Message

CONTRACT: dict[str, Any] = novas.load("rpc")

CLIENTS = {
    "compute": clients.ComputeClient,
    "conductor": clients.ConductorClient,
    "compute_task": clients.ComputeTaskClient,
    "scheduler": clients.SchedulerClient,
    "baseapi": clients.BaseClient,
}
NEWEST = {"compute": "6.5"}
SECONDS = {"rpc_response_timeout": 50, "long_rpc_timeout": 1700, "timeout": 7, "None": None, None: None}
FALSY = {"accel_uuids": [], "reimage_boot_volume": False, "target_state": None}
"""What stands for arguments that an older server refuses unless they say nothing (variant `conditional_falsy`)."""

FORMS = {
    "request_spec_dict": "to_legacy_request_spec_dict",
    "filter_properties_dict": "to_legacy_filter_properties_dict",
    "network_tuples": "as_tuples",
}
"""Our names of older forms, and the contract's."""


class Said:
    """A value that says in the contract's notation what it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __getattr__(self, name: str) -> Said:
        if name.startswith("__"):
            raise AttributeError(name)
        return Said(f"{self.text}.{name}")

    def __getitem__(self, index: int) -> Said:
        return Said(f"{self.text}[{index}]")

    def __str__(self) -> str:
        return self.text


class Recorder:
    """A transport that keeps what it is given, as the contract writes it down."""

    def __init__(self) -> None:
        self.sent: dict[str, Any] = {}

    def call(self, ctxt: Any, to: Address, message: Message, timeout: float, monitor: float | None = None) -> None:
        self._keep(to, message)
        self.sent |= {"mode": "call", "timeout": timeout, "call_monitor": monitor}

    def cast(self, ctxt: Any, to: Address, message: Message) -> None:
        self._keep(to, message)
        self.sent["mode"] = "cast"

    def _keep(self, to: Address, message: Message) -> None:
        args = {name: value.text if isinstance(value, Said) else value for name, value in message.args.items()}
        self.sent = {
            "rpc_method": message.method,
            "version": message.version,
            "namespace": message.namespace,
            "topic": to.topic,
            "server": to.server,
            "fanout": to.fanout,
            "args": args,
        }


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    for ours, theirs in FORMS.items():
        monkeypatch.setitem(forms.FORMS, ours, functools.partial(old_form, theirs))
    return Recorder()


def old_form(name: str, value: Said) -> str:
    return f"{value}.{name}()"


def client(api: str, cap: str | None, recorder: Recorder) -> Any:
    conf = cfg.ConfigOpts()
    conf.register_opts(default_rpc.OPTIONS)
    conf.register_opts(upgrade_levels.OPTIONS, group=upgrade_levels.GROUP)
    conf([])
    bus = Bus(conf, "fake://recorded")
    conf.set_override("long_rpc_timeout", SECONDS["long_rpc_timeout"])
    conf.set_override("rpc_response_timeout", SECONDS["rpc_response_timeout"])
    bus._made = recorder  # type: ignore[assignment]
    more = {"topic": "*"} if api == "baseapi" else {}
    return CLIENTS[api](bus, cap=cap, **more)


def rows() -> list[Any]:
    found = []
    for api, facts in CONTRACT["apis"].items():
        for name, method in facts["methods"].items():
            for row in method["by_cap"]:
                if row["sent"] is not None:
                    told = json.dumps(row.get("when") or {})
                    ident = f"{api}.{name}-{row['cap']}-{row['variant']}-{told}"
                    found.append(pytest.param(api, name, method["client_args"], row, id=ident))
    return found


def values(arguments: list[dict[str, Any]], row: dict[str, Any]) -> dict[str, Any]:
    """The client's arguments of a row."""
    given: dict[str, Any] = {}
    for argument in arguments:
        name = argument["name"]
        if row["variant"] == "optional_omitted" and "default" in argument:
            continue
        falsy = row["variant"] == "conditional_falsy" and name in FALSY
        given[name] = FALSY[name] if falsy else Said(f"${name}")
    return given | (row.get("when") or {})


@pytest.mark.parametrize(("api", "name", "arguments", "row"), rows())
def test_what_is_sent_equals_the_contract(
    api: str, name: str, arguments: list[dict[str, Any]], row: dict[str, Any], recorder: Recorder
) -> None:
    cap = None if row["cap"] == NEWEST.get(api) else row["cap"]
    given, facts = values(arguments, row), dict(row["sent"])
    if name == "ping" and "timeout" in given:
        given["timeout"] = SECONDS["timeout"]
    method = getattr(client(api, cap, recorder), name)
    if "raises" in facts:
        with pytest.raises(getattr(exceptions, facts["raises"])):
            method(context.admin(), **given)
        assert recorder.sent == {}
        return
    method(context.admin(), **given)
    facts.pop("arg_order")
    if facts["mode"] == "cast":
        # The contract notes what was prepared for either mode; a cast waits for nothing.
        facts = {name: value for name, value in facts.items() if name not in ("timeout", "call_monitor")}
    else:
        # Without a limit of its own a call has the bus's.
        facts["timeout"] = SECONDS[facts["timeout"]] or SECONDS["rpc_response_timeout"]
        facts["call_monitor"] = SECONDS[facts["call_monitor"]]
    assert recorder.sent == facts


def test_a_host_that_is_given_long_says_that_it_lives(recorder: Recorder) -> None:
    asks = client("compute", None, recorder)
    asks.bus.conf.set_override("rpc_response_timeout", CONTRACT["timeouts"]["heartbeat_threshold"] + 1)
    asks.get_host_uptime(context.admin(), host="h")
    assert recorder.sent["call_monitor"] == CONTRACT["timeouts"]["heartbeat_threshold"]
