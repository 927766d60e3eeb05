"""The bus: messages, answers, errors and turns, on the in-memory bus and under oslo.messaging."""

from __future__ import annotations

import concurrent.futures
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from oslo_config import cfg
from tests.waiting import until

from kilonova.base import ids, present
from kilonova.conf import default_rpc, upgrade_levels
from kilonova.contract import context, exceptions, objects
from kilonova.wire.rpc import amqp, errors, later
from kilonova.wire.rpc.amqp import AmqpTransport
from kilonova.wire.rpc.bus import Bus
from kilonova.wire.rpc.clients import BaseClient, ComputeClient, ConductorClient, SchedulerClient
from kilonova.wire.rpc.serializer import Decoder
from kilonova.wire.rpc.transport import Address, Message
from kilonova.wire.rpc.versions import AutomaticCap, Lowest, version_of

UUID = "5f2b1d7e-1f4e-4a3c-8a57-0d3f1f1b2c3d"


def configuration() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf.register_opts(default_rpc.OPTIONS)
    conf.register_opts(upgrade_levels.OPTIONS, group=upgrade_levels.GROUP)
    conf([])
    return conf


class Compute:
    """Records what it is asked, answers by name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: list[tuple[str, Any]] = []
        self.taken = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def stop_instance(self, ctxt: Any, *, instance: Any, clean_shutdown: bool) -> None:
        self.seen.append(("stop", (ctxt, instance, clean_shutdown)))
        self.taken.set()

    def get_console_output(self, ctxt: Any, *, instance: Any, tail_length: int) -> str:
        if tail_length < 0:
            raise exceptions.InstanceNotFound(instance_id=instance.uuid)
        if tail_length == 0:
            raise KeyError("boom")
        return f"{self.name}:{tail_length}"

    def pause_instance(self, ctxt: Any, *, instance: Any) -> None:
        self.seen.append(("present", present.current()))
        raise exceptions.NoValidHost(reason="all are full")

    def get_diagnostics(self, ctxt: Any, *, instance: Any) -> Any:
        assert self.may_answer.wait(20)
        return {"instance": instance, "set": {1}}

    def build_and_run_instance(self, ctxt: Any, **kwargs: Any) -> None:
        self.seen.append(("build", kwargs))
        self.taken.set()


@pytest.fixture(params=["memory", "oslo"])
def bus(request: pytest.FixtureRequest) -> Iterator[Bus]:
    conf = configuration()
    url = f"fake://{ids.new_uuid()}"
    made = Bus(conf, url)
    conf.set_override("control_exchange", f"test-{ids.new_uuid()}")
    if request.param == "oslo":
        made._made = AmqpTransport(conf, f"fake:///{ids.new_uuid()}", Decoder(made._backport))
    yield made
    made.close()


@pytest.fixture
def hosts(bus: Bus) -> Iterator[dict[str, Compute]]:
    handlers = {name: Compute(name) for name in ("h1", "h2")}
    servers = [bus.serve("compute", name, [handler]) for name, handler in handlers.items()]
    for server in servers:
        server.start()
    yield handlers
    for server in servers:
        server.stop()
        server.wait(5)


def instance(host: str = "h1") -> Any:
    return objects.Instance(uuid=UUID, host=host, metadata={"a": "b"})


def user() -> context.RequestContext:
    return context.RequestContext("u", "p", roles=["member"], overwrite=False)


def test_a_cast_reaches_the_named_host_with_objects_and_context(bus: Bus, hosts: dict[str, Compute]) -> None:
    ctxt = user()
    ComputeClient(bus).stop_instance(ctxt, instance("h2"), clean_shutdown=False)
    assert hosts["h2"].taken.wait(20)
    _, (seen, got, clean) = hosts["h2"].seen[0]
    assert (seen.user_id, seen.request_id, seen.roles) == ("u", ctxt.request_id, ["member"])
    assert isinstance(got, objects.Instance)
    assert (got.uuid, got.metadata, clean) == (UUID, {"a": "b"}, False)
    assert hosts["h1"].seen == []


def test_a_method_works_for_who_sent_the_message_and_its_thread_for_nobody_afterwards(
    bus: Bus, hosts: dict[str, Compute], caplog: pytest.LogCaptureFixture
) -> None:
    bus.conf.set_override("executor_thread_pool_size", 1)
    after: list[Any] = []
    lines: list[tuple[str, Any, bool]] = []

    class Watch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.WARNING:
                lines.append((record.getMessage(), present.current(), record.exc_info is not None))

    watch = Watch()
    logging.getLogger().addHandler(watch)
    try:
        for name in ("ann", "joe"):
            ctxt = context.RequestContext(name, "p")
            ComputeClient(bus).pause_instance(ctxt, instance())
            until(lambda: len(lines) == len(after) + 1)
            (said, whose, traceback), (_, worked_for) = lines[-1], hosts["h1"].seen[-1]
            assert worked_for.request_id == whose.request_id == ctxt.request_id
            assert "all are full" in said
            assert not traceback
            after.append(present.current())
    finally:
        logging.getLogger().removeHandler(watch)
    assert after == [None, None]


def test_the_argument_decides_between_cast_and_call(bus: Bus, hosts: dict[str, Compute]) -> None:
    ComputeClient(bus).stop_instance(user(), instance(), do_cast=False)
    assert hosts["h1"].seen[0][0] == "stop"


def test_a_call_brings_back_the_answer(bus: Bus, hosts: dict[str, Compute]) -> None:
    client = ComputeClient(bus)
    assert client.get_console_output(user(), instance("h2"), 5) == "h2:5"
    assert client.get_console_output(user(), host="h1", instance=instance("h2"), tail_length=5) == "h1:5"
    answer = client.get_diagnostics(user(), instance())
    assert isinstance(answer["instance"], objects.Instance)
    assert answer["set"] == [1]


def test_exceptions_of_the_contract_come_back_as_themselves(bus: Bus, hosts: dict[str, Compute]) -> None:
    with pytest.raises(exceptions.InstanceNotFound) as caught:
        ComputeClient(bus).get_console_output(user(), instance(), -1)
    assert caught.value.format_message() == f"Instance {UUID} could not be found."
    assert caught.value.code == 404


def test_other_exceptions_come_back_as_remote_errors(bus: Bus, hosts: dict[str, Compute]) -> None:
    with pytest.raises(errors.RpcRemoteError) as caught:
        ComputeClient(bus).get_console_output(user(), instance(), 0)
    assert caught.value.kind == "KeyError"
    assert "boom" in str(caught.value)


def test_missing_arguments_get_the_defaults_of_the_interface(bus: Bus, hosts: dict[str, Compute]) -> None:
    args = dict.fromkeys(["instance", "image", "request_spec", "filter_properties", "accel_uuids"])
    bus.cast(user(), Address("compute", "h1"), Message("build_and_run_instance", args, "6.0"))
    assert hosts["h1"].taken.wait(20)
    assert hosts["h1"].seen[0][1]["host_list"] is None


def test_the_previous_major_is_understood(bus: Bus, hosts: dict[str, Compute]) -> None:
    resized: list[dict[str, Any]] = []
    hosts["h1"].resize_instance = lambda ctxt, **kwargs: resized.append(kwargs)  # type: ignore[attr-defined]
    server = bus.serve("compute", "h3", [hosts["h1"]])
    server.start()
    args = {"instance": instance(), "image": None, "migration": None, "instance_type": "small", "clean_shutdown": True}
    bus.call(user(), Address("compute", "h3"), Message("resize_instance", args, "5.0"), 20)
    assert (resized[0]["flavor"], resized[0]["request_spec"], "instance_type" in resized[0]) == ("small", None, False)
    plain = Message("get_console_output", {"instance": instance(), "tail_length": 3}, "5.0")
    assert bus.call(user(), Address("compute", "h3"), plain, 20) == "h1:3"
    server.stop()
    server.wait(5)


def test_what_is_not_built_answers_clearly(bus: Bus, hosts: dict[str, Compute]) -> None:
    with pytest.raises(exceptions.NovaException, match="quiesce_instance is not available"):
        ComputeClient(bus).quiesce_instance(user(), instance())


def test_unknown_method_and_version_are_refused(bus: Bus, hosts: dict[str, Compute]) -> None:
    for message in (Message("dance", {}, "6.0"), Message("get_host_uptime", {}, "6.9")):
        with pytest.raises(errors.RpcUnsupported):
            bus.call(user(), Address("compute", "h1"), message, 5)


class Slow(Compute):
    """Ends what it is asked when it is told to."""

    def __init__(self) -> None:
        super().__init__("slow")
        self.ends: list[concurrent.futures.Future[Any]] = []

    def stop_instance(self, ctxt: Any, *, instance: Any, clean_shutdown: bool) -> Any:
        self.ends.append(concurrent.futures.Future())
        return self.ends[-1]

    def get_diagnostics(self, ctxt: Any, *, instance: Any) -> Any:
        return self.stop_instance(ctxt, instance=instance, clean_shutdown=True)


@pytest.fixture
def slow(bus: Bus) -> Iterator[Slow]:
    bus.conf.set_override("executor_thread_pool_size", 2)
    handler = Slow()
    server = bus.serve("compute", "h1", [handler])
    server.start()
    yield handler
    server.stop()
    server.wait(5)


def test_work_that_takes_long_holds_no_thread_of_the_server(bus: Bus, slow: Slow) -> None:
    client = ComputeClient(bus)
    for _ in range(5):
        client.stop_instance(user(), instance(), clean_shutdown=True)
    with concurrent.futures.ThreadPoolExecutor(5) as callers:
        calls = [callers.submit(client.get_diagnostics, user(), instance()) for _ in range(5)]
        until(lambda: len(slow.ends) == 10)
        # Others are heard while all of that is under way.
        assert client.get_console_output(user(), instance(), tail_length=3) == "slow:3"
        assert not any(call.done() for call in calls)
        for end in slow.ends:
            end.set_result({"set": {1}, "instance": instance()})
        answers = [call.result(20) for call in calls]
    assert [each["set"] for each in answers] == [[1]] * 5
    assert answers[0]["instance"].uuid == UUID


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (exceptions.InstanceNotFound(instance_id="i"), exceptions.InstanceNotFound),
        (KeyError("boom"), errors.RpcRemoteError),
        # The host ends in the middle of it, and takes it up again when it is back.
        (SystemExit(3), errors.RpcTimeout),
    ],
)
def test_a_later_answer_may_be_an_error(bus: Bus, slow: Slow, error: BaseException, told: type[Exception]) -> None:
    bus.conf.set_override("rpc_response_timeout", 2)
    with concurrent.futures.ThreadPoolExecutor(1) as callers:
        call = callers.submit(ComputeClient(bus).get_diagnostics, user(), instance())
        until(lambda: slow.ends)
        slow.ends[0].set_exception(error)
        with pytest.raises(told):
            call.result(20)


def test_a_caller_hears_that_its_call_is_worked_on() -> None:
    beats = threading.Event()

    class Message:
        client_timeout = 1
        answered: Any = None

        def heartbeat(self) -> None:
            beats.set()

        def reply(self, reply: Any = None, failure: Any = None) -> None:
            self.answered = reply

    message, future = Message(), concurrent.futures.Future[Any]()
    with concurrent.futures.ThreadPoolExecutor(1) as answerers:
        later._Patient(message, answerers).reply(later.Promise(future, lambda exc: False))
        assert beats.wait(20)
        future.set_result(1)
    assert message.answered == 1


def test_a_late_answer_is_a_timeout(bus: Bus, hosts: dict[str, Compute]) -> None:
    message = Message("get_diagnostics", {"instance": instance()}, "6.0")
    hosts["h1"].may_answer.clear()
    with pytest.raises(errors.RPC_LOST):
        bus.call(user(), Address("compute", "h1"), message, 0.1)
    hosts["h1"].may_answer.set()


def test_ping_is_served_everywhere(bus: Bus, hosts: dict[str, Compute]) -> None:
    assert BaseClient(bus, "compute").ping(user(), "hello", 5, host="h1")["arg"] == "hello"


def test_fanout_reaches_all_and_an_open_call_one(bus: Bus) -> None:
    class Scheduler:
        def __init__(self) -> None:
            self.seen = threading.Event()

        def update_aggregates(self, ctxt: Any, *, aggregates: Any) -> None:
            self.seen.set()

        def select_destinations(self, ctxt: Any, **kwargs: Any) -> list[list[Any]]:
            raise exceptions.NoValidHost(reason="none", explanation={"candidates": 0})

    handlers = [Scheduler(), Scheduler()]
    servers = [bus.serve("scheduler", f"s{n}", [handler]) for n, handler in enumerate(handlers)]
    for server in servers:
        server.start()
    SchedulerClient(bus).update_aggregates(user(), aggregates=[])
    assert all(handler.seen.wait(20) for handler in handlers)
    with pytest.raises(exceptions.NoValidHost, match=r"No valid host was found. none") as caught:
        SchedulerClient(bus).select_destinations(user(), None, [UUID])
    assert caught.value.kwargs["explanation"] == {"candidates": 0}
    for server in servers:
        server.stop()
        server.wait(5)


def test_an_object_from_the_future_is_asked_for_in_our_version(bus: Bus) -> None:
    class Conductor:
        def object_action(self, ctxt: Any, *, objinst: Any, objmethod: str, args: Any, kwargs: Any) -> Any:
            return objinst.uuid

        def object_backport_versions(self, ctxt: Any, *, objinst: Any, object_versions: Any) -> Any:
            assert object_versions["Tag"] == "1.1"
            return objinst | {"nova_object.version": object_versions["Instance"]}

    # oslo's dispatcher would try to understand the object it is to translate; a real conductor knows the newer version.
    server = bus.serve("conductor", "c1", [Conductor()])
    server.start()
    primitive = instance().obj_to_primitive()
    newer = primitive | {"nova_object.version": "2.99"}
    decoder = Decoder(
        lambda ctxt, prim, versions: Conductor().object_backport_versions(ctxt, objinst=prim, object_versions=versions)
    )
    got = decoder.decode(user(), {"x": [newer]})
    assert got["x"][0]["nova_object.version"] == "2.8"
    tagged = primitive | {"nova_object.version": "2.8.1"}
    assert decoder.decode(user(), tagged).uuid == UUID
    assert ConductorClient(bus).object_action(user(), instance(), "save", [], {}) == UUID
    server.stop()
    server.wait(5)


def test_version_caps_choose_older_messages_or_refuse(bus: Bus, hosts: dict[str, Compute]) -> None:
    old = ComputeClient(bus, cap="6.1")
    with pytest.raises(exceptions.UnsupportedRPCVersion):
        old.allow_share(user(), instance(), None)
    names = [a.name for a in old.API.by_name["rebuild_instance"].arguments]
    values = dict.fromkeys(names) | {"instance": instance(), "target_state": "active", "host": "h1"}
    with pytest.raises(exceptions.UnsupportedRPCVersion):
        old.rebuild_instance(user(), **values)


def test_upgrade_levels_take_release_names_and_numbers() -> None:
    conf: cfg.ConfigOpts = configuration()
    bus = Bus(conf, "fake://caps")
    makes = {"compute": ComputeClient, "conductor": ConductorClient, "scheduler": SchedulerClient}
    for level, release, version in (
        ("compute", "zed", "6.1"),
        ("conductor", "kilo", "2.1"),
        ("scheduler", "pike", "4.4"),
    ):
        for said in (release, version):
            conf.set_override(level, said, group="upgrade_levels")
            assert makes[level](bus).cap == version
    conf.set_override("baseapi", "1.0", group="upgrade_levels")
    assert BaseClient(bus, "compute").cap == "1.0"
    conf.set_override("compute", "zebra", group="upgrade_levels")
    with pytest.raises(ValueError, match=r"'zebra' is neither a version of the compute interface nor a release"):
        ComputeClient(bus).start_instance(user(), instance())


def test_what_is_newer_than_the_cap_is_not_sent() -> None:
    bus = Bus(configuration(), "fake://old")
    with pytest.raises(exceptions.UnsupportedRPCVersion, match="start_instance"):
        ComputeClient(bus, cap="4.13").start_instance(user(), instance())
    with pytest.raises(exceptions.UnsupportedRPCVersion, match="start_instance"):
        ComputeClient(bus, cap="7.0").start_instance(user(), instance())


def test_auto_is_what_the_oldest_compute_service_understands() -> None:
    conf: cfg.ConfigOpts = configuration()
    conf.set_override("compute", "auto", group="upgrade_levels")
    answers = iter([Lowest(None), Lowest(66, sure=False), Lowest(64), Lowest(74)])
    automatic = AutomaticCap(lambda: next(answers))
    bus = Bus(conf, "fake://auto", compute_cap=automatic)
    kept = ComputeClient(bus)
    assert [kept.cap, kept.cap] == [None, "6.2"]
    assert [ComputeClient(bus.at("fake://auto-cell")).cap, kept.cap] == ["6.1", "6.1"]
    automatic.forget()
    assert [kept.cap] == ["6.5"]
    assert version_of(9999) == "6.5"


def test_wrong_arguments_are_told_to_the_caller(bus: Bus) -> None:
    client = ComputeClient(bus)
    with pytest.raises(TypeError, match="needs instance"):
        client.start_instance(user())
    with pytest.raises(TypeError, match="does not take force"):
        client.start_instance(user(), instance=instance(), force=True)
    with pytest.raises(AttributeError):
        client.dance(user())
    with pytest.raises(exceptions.NovaException, match="No compute host"):
        client.start_instance(user(), objects.Instance(uuid=UUID, host=None))


def test_buses_of_cells_are_apart() -> None:
    bus = Bus(configuration(), "fake://one")
    other = bus.at("fake://two/")
    assert other is bus.at("fake://two/")
    assert bus.at("fake://one/") is bus
    seen = Compute("h1")
    server = other.serve("compute", "h1", [seen])
    server.start()
    ComputeClient(bus).stop_instance(user(), instance())
    ComputeClient(bus).at("fake://two/").stop_instance(user(), instance(), do_cast=False)
    server.stop()
    server.wait(5)
    assert len(seen.seen) == 1


def test_a_call_waits_for_a_server_that_is_about_to_start() -> None:
    bus = Bus(configuration(), "fake://late")
    server = bus.serve("compute", "h1", [Compute("h1")])
    threading.Timer(0.2, server.start).start()
    assert ComputeClient(bus).get_console_output(user(), instance(), 1) == "h1:1"
    server.stop()
    server.wait(5)
    with pytest.raises(errors.RpcTimeout):
        bus.call(user(), Address("compute", "h1"), Message("get_host_uptime", {}, "6.0"), 0.1)


def test_a_broker_that_is_away_is_unreachable_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amqp, "CONNECTION_RETRIES", 0)
    bus = Bus(configuration(), "rabbit://guest:guest@127.0.0.1:1/")
    with pytest.raises(errors.RpcUnreachable):
        ComputeClient(bus).stop_instance(user(), instance())


def test_a_server_whose_broker_is_away_keeps_nobody_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amqp, "STOP_SECONDS", 0.1)
    never = threading.Event()
    bus = Bus(configuration(), "rabbit://guest:guest@127.0.0.1:1/")
    servers = bus.serve("compute", "h1", [Compute("h1")])
    for server in servers.servers:
        for name in ("stop", "wait"):
            monkeypatch.setattr(server._served, name, lambda: never.wait(20))
    monkeypatch.setattr(bus.transport._transport, "cleanup", lambda: never.wait(20))
    began = time.monotonic()
    servers.refuse()
    servers.stop()
    # What waits for the end of its server's stop, as oslo.messaging does, would wait for ever.
    servers.wait(20)
    bus.close()
    never.set()
    assert time.monotonic() - began < 5


def test_a_remote_connection_error_is_not_ours() -> None:
    lost, remote = ConnectionResetError("reset"), ConnectionResetError("reset\nTraceback (most recent call last):\n...")
    assert isinstance(amqp._failed(lost), errors.RpcUnreachable)
    assert isinstance(amqp._failed(remote), errors.RpcRemoteError)
