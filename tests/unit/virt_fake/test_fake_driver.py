"""The fake driver behaves: it remembers, takes time, fails when told, and has the size it was given."""

from __future__ import annotations

import json
import pathlib
import time
from typing import Any

import pytest
from tests.fakes.guests import instance, ovs_port, spec

from kilonova import conf as configuration
from kilonova.contract import context, exceptions
from kilonova.virt import identity, loader
from kilonova.virt.driver import BlockDevices, Driver, GuestChange, GuestEvent, Services
from kilonova.virt.fake.driver import FakeBuildAbortDriver, FakeDriver, FakeRescheduleDriver, MediumFakeDriver
from kilonova.virt.fake.faults import Fault, parse

CTXT = context.admin()


@pytest.fixture
def conf() -> Any:
    made = configuration.new()
    made([], project="nova", default_config_files=[], default_config_dirs=[])
    return made


@pytest.fixture
def driver(conf: Any, tmp_path: pathlib.Path) -> FakeDriver:
    return FakeDriver(conf, "h1", tmp_path)


def destroy(driver: FakeDriver, guest: Any, **more: Any) -> None:
    driver.destroy(CTXT, guest, [], BlockDevices(), **more)


def test_a_guest_lives_through_a_restart(conf: Any, tmp_path: pathlib.Path, driver: FakeDriver) -> None:
    made = spec(network_info=[ovs_port("p1")])
    driver.spawn(CTXT, made)
    driver.power_off(made.instance)
    again = FakeDriver(conf, "h1", tmp_path)
    assert again.guest(made.instance.uuid).power_state == 4
    assert again.nodes() == driver.nodes()
    again.power_on(CTXT, made)
    assert "port p1" in again.console_output(made.instance).decode()
    assert "boot 2" in again.console_output(made.instance).decode()
    destroy(again, made.instance)
    destroy(again, made.instance)
    assert FakeDriver(conf, "h1", tmp_path).guests() == {}


def test_a_guest_whose_disks_are_kept_is_no_guest(driver: FakeDriver) -> None:
    made = spec()
    driver.spawn(CTXT, made)
    destroy(driver, made.instance, destroy_disks=False)
    assert driver.guests() == {}
    with pytest.raises(exceptions.InstanceNotFound):
        driver.guest(made.instance.uuid)


def test_hosts_of_one_process_do_not_meet(conf: Any, tmp_path: pathlib.Path) -> None:
    one, two = (FakeDriver(conf, host, tmp_path / host) for host in ("h1", "h2"))
    made = spec()
    one.spawn(CTXT, made)
    assert made.instance.uuid not in two.guests()
    assert one.nodes() != two.nodes()


def test_a_call_takes_the_time_it_was_given(conf: Any, tmp_path: pathlib.Path) -> None:
    conf.set_override("fake_latency", {"spawn": 0.2}, group="kilonova")
    driver = FakeDriver(conf, "h1", tmp_path)
    began = time.monotonic()
    driver.spawn(CTXT, spec())
    assert time.monotonic() - began >= 0.2
    began = time.monotonic()
    driver.guests()
    assert time.monotonic() - began < 0.2


def test_calls_fail_by_number_host_and_instance(driver: FakeDriver) -> None:
    driver.faults.add(Fault("spawn", lambda: exceptions.NovaException("second"), host="h1", calls=[2]))
    driver.faults.add(Fault("spawn", lambda: exceptions.NovaException("elsewhere"), host="h2"))
    first, second, third = spec(), spec(), spec()
    driver.faults.add(Fault("guest", lambda: OSError("flaky"), instance=third.instance.uuid))
    driver.spawn(CTXT, first)
    with pytest.raises(exceptions.NovaException, match="second"):
        driver.spawn(CTXT, second)
    driver.spawn(CTXT, third)
    assert set(driver.guests()) == {first.instance.uuid, third.instance.uuid}
    driver.guest(first.instance.uuid)
    with pytest.raises(OSError, match="flaky"):
        driver.guest(third.instance.uuid)


def test_a_call_can_fail_after_its_work(driver: FakeDriver) -> None:
    driver.faults.add(Fault("spawn", lambda: exceptions.NovaException("late"), after=True))
    made = spec()
    with pytest.raises(exceptions.NovaException, match="late"):
        driver.spawn(CTXT, made)
    assert made.instance.uuid in driver.guests()


def test_a_running_process_is_told_by_its_file(conf: Any, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "faults.json"
    conf.set_override("fake_faults", str(path), group="kilonova")
    driver = FakeDriver(conf, "h1", tmp_path)
    driver.spawn(CTXT, spec())
    rule = {"method": "spawn", "exception": "ComputeResourcesUnavailable", "message": "full", "calls": [1]}
    path.write_text(json.dumps([rule]))
    with pytest.raises(exceptions.ComputeResourcesUnavailable, match="full"):
        driver.spawn(CTXT, spec())
    driver.spawn(CTXT, spec())
    path.unlink()
    driver.spawn(CTXT, spec())


def test_a_rule_names_an_exception() -> None:
    with pytest.raises(ValueError, match="objects"):
        parse({"method": "spawn", "exception": "objects"})


def test_sizes(conf: Any, tmp_path: pathlib.Path) -> None:
    medium = MediumFakeDriver(conf, "h1", tmp_path)
    assert (medium.resources("h1").vcpus, medium.inventory("h1")["DISK_GB"].total) == (10, 1028)
    conf.set_override("fake_vcpus", 3, group="kilonova")
    assert MediumFakeDriver(conf, "h1", tmp_path).inventory("h1")["VCPU"].total == 3


def test_events_reach_the_agent(driver: FakeDriver) -> None:
    seen: list[GuestEvent] = []
    driver.start("h1", seen.append)
    made = spec()
    driver.spawn(CTXT, made)
    driver.change(made.instance.uuid, GuestChange.PAUSED)
    assert seen == [GuestEvent(made.instance.uuid, GuestChange.PAUSED)]
    assert driver.guest(made.instance.uuid).power_state == 3
    driver.stop()
    driver.change(made.instance.uuid, GuestChange.RESUMED)
    assert len(seen) == 1


def test_an_empty_host_adopts_what_the_record_says(driver: FakeDriver) -> None:
    one, two = instance(power_state=1), instance(power_state=0)
    driver.adopt([one, two])
    assert set(driver.guests()) == {one.uuid}
    driver.adopt([instance(power_state=1)])
    assert set(driver.guests()) == {one.uuid}


def test_the_refusing_drivers(conf: Any, tmp_path: pathlib.Path) -> None:
    refusing, made = FakeRescheduleDriver(conf, "h1", tmp_path), spec()
    with pytest.raises(exceptions.ComputeResourcesUnavailable):
        refusing.spawn(CTXT, made)
    FakeRescheduleDriver(conf, "h2", tmp_path).spawn(CTXT, made)
    with pytest.raises(exceptions.BuildAbortException):
        FakeBuildAbortDriver(conf, "h1", tmp_path).spawn(CTXT, spec())


# --- finding a driver, and who the node is -----------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "fake.FakeDriver",
        "nova.virt.fake.SmallFakeDriver",
        "fake.MediumFakeDriver",
        "fake.FakeDriverWithoutFakeNodes",
        "fake.SameHostColdMigrateDriver",
        "fake.EphEncryptionDriverLUKS",
        "fake.RescueBFVDriver",
    ],
)
def test_drivers_are_found_by_novas_names(conf: Any, tmp_path: pathlib.Path, name: str) -> None:
    conf.set_override("compute_driver", name)
    found = loader.load(conf, "h1", tmp_path, Services(images=None, events=None))  # type: ignore[arg-type]
    assert isinstance(found, Driver)
    assert type(found).__name__ == name.rpartition(".")[2]


@pytest.mark.parametrize(
    "name", [None, "", "fake", "vmwareapi.VMwareVCDriver", "fake.Nobody", "fake.Guests", "fake.os"]
)
def test_other_names_are_refused(conf: Any, tmp_path: pathlib.Path, name: str | None) -> None:
    conf.set_override("compute_driver", name)
    with pytest.raises(exceptions.InvalidConfiguration, match="compute_driver"):
        loader.load(conf, "h1", tmp_path, Services(images=None, events=None))  # type: ignore[arg-type]


def test_identity_is_made_once_and_must_agree(tmp_path: pathlib.Path) -> None:
    state, beside = tmp_path / "state", tmp_path / "etc"
    beside.mkdir()
    made = identity.ensure([beside], state)
    assert identity.ensure([beside], state) == made == (state / "compute_id").read_text()
    with pytest.raises(exceptions.InvalidNodeConfiguration):
        identity.write(state, made)
    (beside / "compute_id").write_text(f"{made}\n")
    assert identity.read([beside, state]) == made
    (beside / "compute_id").write_text("11111111-1111-4111-8111-111111111111")
    with pytest.raises(exceptions.InvalidNodeConfiguration, match="contradict"):
        identity.read([beside, state])
    (beside / "compute_id").write_text("me")
    with pytest.raises(exceptions.InvalidNodeConfiguration):
        identity.read([beside])
    assert identity.beside([str(beside / "nova.conf")]) == [beside]
