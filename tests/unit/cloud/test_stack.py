import itertools
from collections.abc import Callable
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import pytest
from tests.contract import facts

from kilonova import conf as configuration
from kilonova.cloud import packages, steps
from kilonova.cloud.daemons import Daemon
from kilonova.cloud.errors import CloudError
from kilonova.cloud.services.kilonova import PRIVILEGED, Compute
from kilonova.cloud.services.rabbitmq import definitions
from kilonova.cloud.site import Site
from kilonova.cloud.stack import Choice, Cloud
from kilonova.conf import unknown

SHAPES = [
    {"profile": profile, "driver": driver, "network": "ovn" if driver == "libvirt" else "bind-all", "volumes": volumes}
    for profile, driver, volumes in itertools.product(("embedded", "full"), ("libvirt", "fake"), (True, False))
]


@pytest.fixture(params=SHAPES, ids=lambda shape: "-".join(str(value) for value in shape.values()))
def place(request: pytest.FixtureRequest, make_site: Callable[..., Site]) -> Site:
    return make_site(**request.param, computes=3)


def test_every_plan_can_be_carried_out(place: Site) -> None:
    plan = Cloud(place).steps()
    steps.check(plan)
    names = [step.name for step in plan]
    assert names[-1] == "first server"
    assert ("cinder" in names) == place.settings.volumes
    assert ("rabbitmq" in names) == place.full


def test_daemons_have_names_of_their_own(place: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    names = Cloud(place).daemon_names()
    assert len(set(names)) == len(names)
    kilonova = [name for name in names if name.startswith(("kilonova", "nova-"))]
    assert (kilonova == ["kilonova"]) != place.full


def test_without_compute_there_is_only_what_it_needs(make_site: Callable[..., Site]) -> None:
    cloud = Cloud(make_site(driver="fake", network="bind-all", volumes=False), Choice(compute=False))
    assert cloud.daemon_names() == ["keystone", "placement", "glance", "neutron"]
    assert "first server" not in {step.name for step in cloud.steps()}


def test_a_path_too_long_for_sockets_is_refused(make_site: Callable[..., Site], tmp_path: Path) -> None:
    site = make_site()
    cloud = Cloud(Site(tmp_path / ("x" * 80), site.settings, site.ports))
    with pytest.raises(CloudError, match="shorter"):
        cloud.up()


def test_without_volumes_nobody_looks_for_attachments(place: Site) -> None:
    compute = Compute(place, Cloud(place).supervisor)
    disabled = compute.shared().get("kilonova", {}).get("reconcile_disabled")
    assert disabled == (None if place.settings.volumes else "orphan_attachments")
    assert "hosts" in compute.top().get("kilonova", {}) or place.full or not compute.fake


def options(file: Path) -> set[tuple[str, str]]:
    parser = RawConfigParser(default_section="none", strict=False)
    parser.read(file)
    return {(section, name) for section in parser.sections() for name in parser[section]}


def test_the_configuration_has_only_options_of_nova(place: Site) -> None:
    """Options of libraries and of the built-in server are not in the contract's list; they are named here."""
    known = known_options()
    foreign = {
        "keystone_authtoken",
        "oslo_messaging_notifications",
        "oslo_concurrency",
        "cache",
        "os_vif_ovs",
        "kilonova",
        *PRIVILEGED,
    }
    login = {"auth_type", "auth_url", "username", "password", "project_name", "user_domain_name", "project_domain_name"}
    known |= {("DEFAULT", name) for name in ("log_dir", "transport_url", "lock_path")}
    known |= {("DEFAULT", f"{api}_listen{end}") for api in ("osapi_compute", "metadata") for end in ("", "_port")}
    Compute(place, Cloud(place).supervisor).configure()
    written = {option for file in (place.etc / "compute").glob("*.conf") for option in options(file)}
    assert written
    odd = {
        (section, name)
        for section, name in written
        if (section, name) not in known
        and section not in foreign
        and name not in login | {"region_name", "valid_interfaces"}
    }
    assert not odd


def test_every_option_of_the_configuration_is_obeyed(place: Site) -> None:
    """Or each service would name those that are not at each start."""
    Compute(place, Cloud(place).supervisor).configure()
    files = sorted((place.etc / "compute").glob("*.conf"))
    assert files
    for file in files:
        assert unknown.find(configuration.load(["--config-file", str(file)])) == []


def known_options() -> set[tuple[str, str]]:
    data: Any = facts.load("config")
    return {(item["group"], item["dest"]) for item in data["options"]}


def test_full_has_three_cells_and_every_host_in_one(make_site: Callable[..., Site]) -> None:
    place = make_site(profile="full", driver="fake", network="bind-all", computes=3)
    compute = Compute(place, Cloud(place).supervisor)
    assert compute.hosts() == {"fake-1": "cell1", "fake-2": "cell2", "fake-3": "cell1"}
    names = [daemon.name for daemon in compute.daemons()]
    assert {"nova-conductor", "nova-conductor-cell1", "nova-conductor-cell2", "nova-compute-fake-2"} <= set(names)
    compute.configure()
    cell2 = (place.etc / "compute" / "nova-cell2.conf").read_text()
    assert "/nova_cell2" in cell2
    assert "api_database" not in cell2


def test_embedded_is_one_process_with_a_driver(make_site: Callable[..., Site]) -> None:
    place = make_site(driver="fake", network="bind-all")
    compute = Compute(place, Cloud(place).supervisor)
    compute.configure()
    text = (place.etc / "compute" / "nova.conf").read_text()
    assert "compute_driver = fake.FakeDriver" in text
    assert "transport_url = fake://" in text
    assert "nova_cell1.db" in text


def test_rabbitmq_knows_the_password() -> None:
    import base64
    import hashlib

    user = definitions("pw")["users"][0]
    raw = base64.b64decode(user["password_hash"])
    assert raw[4:] == hashlib.sha256(raw[:4] + b"pw").digest()


def test_packages_are_asked_for_only_where_needed(
    make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages.shutil, "which", lambda program, path=None: None)
    fake = packages.missing(make_site(driver="fake", network="bind-all"))
    assert "mariadb-server" not in fake
    assert "libvirt-daemon" not in fake
    everything = packages.missing(make_site(profile="full"))
    assert {"mariadb-server", "rabbitmq-server", "libvirt-daemon", "ovn-host"} <= set(everything)


def test_nothing_missing_runs_no_apt(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "missing", lambda site: [])
    monkeypatch.setattr(packages, "run", lambda *a, **k: pytest.fail("apt was run"))
    packages.install(make_site())


def test_a_process_without_a_port_is_ready_when_it_says_so(make_site: Callable[..., Site]) -> None:
    place = make_site(profile="full", driver="fake", network="bind-all")
    cloud = Cloud(place)
    cloud.supervisor.start(Daemon("nova-conductor", ["sleep", "60"]))
    pid = cloud.supervisor.pid("nova-conductor")
    compute = Compute(place, cloud.supervisor)
    log = place.log / "nova-conductor.log"
    try:
        assert not compute.says_ready("nova-conductor")
        log.write_text("2026-01-01 00:00:00.000 1 INFO kilonova.cmd.process [-] ready\n")
        assert not compute.says_ready("nova-conductor")
        log.write_text(f"2026-01-01 00:00:00.000 {pid} INFO kilonova.cmd.process [-] ready\n")
        assert compute.says_ready("nova-conductor")
    finally:
        cloud.supervisor.stop("nova-conductor")


def test_conductors_start_before_hosts(make_site: Callable[..., Site]) -> None:
    place = make_site(profile="full", driver="fake", network="bind-all", computes=2)
    first, second = Compute(place, Cloud(place).supervisor).groups()
    assert {daemon.name for daemon in first} == {"nova-conductor", "nova-conductor-cell1", "nova-conductor-cell2"}
    assert {"nova-scheduler", "nova-compute-fake-1", "nova-api"} <= {daemon.name for daemon in second}
