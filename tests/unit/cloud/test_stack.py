import itertools
import re
from collections.abc import Callable, Sequence
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import pytest
from tests.contract import facts

from kilonova import conf as configuration
from kilonova.cloud import credentials, packages, steps
from kilonova.cloud.daemons import Daemon
from kilonova.cloud.errors import CloudError
from kilonova.cloud.services import cinder, glance, keystone, kilonova, mariadb, memcached, neutron, placement
from kilonova.cloud.services.kilonova import Compute
from kilonova.cloud.services.kilonova_conf import PRIVILEGED
from kilonova.cloud.services.rabbitmq import VHOSTS, definitions
from kilonova.cloud.services.service import Service
from kilonova.cloud.site import Site
from kilonova.cloud.stack import Choice, Cloud
from kilonova.cmd import checks
from kilonova.conf import unknown
from kilonova.db import urls

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
    assert disabled == (None if place.settings.volumes else "orphan_attachments,orphan_volumes")
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


PROGRAMS: dict[str, Sequence[checks.Check]] = {
    "kilonova": checks.WHOLE,
    "nova-api": checks.API,
    "nova-metadata-api": checks.METADATA,
    "nova-scheduler": checks.SCHEDULER,
    "nova-conductor": checks.CONDUCTOR,
    "nova-compute": checks.COMPUTE,
}


def test_nothing_of_the_configuration_keeps_a_program_from_its_work(place: Site) -> None:
    """The ports are another matter: who holds them on this machine is not known here."""
    compute = Compute(place, Cloud(place).supervisor)
    compute.configure()
    daemons = [daemon for together in compute.groups() for daemon in together]
    assert daemons
    for daemon in daemons:
        words = [str(word) for word in daemon.argv]
        conf = configuration.load(words[words.index("--config-file") :])
        looked = [each for each in PROGRAMS[Path(words[0]).name] if each not in (checks.api_port, checks.metadata_port)]
        assert checks.problems(conf, looked) == []


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


def test_rabbitmq_knows_an_account_for_each_virtual_host() -> None:
    import base64
    import hashlib

    made = definitions({"nova_cell1": "pw", "nova_cell2": "other"})
    assert [(one["user"], one["vhost"]) for one in made["permissions"]] == [
        ("nova_cell1", "nova_cell1"),
        ("nova_cell2", "nova_cell2"),
    ]
    raw = base64.b64decode(made["users"][0]["password_hash"])
    assert raw[4:] == hashlib.sha256(raw[:4] + b"pw").digest()


def test_a_compute_host_has_no_database_and_no_secret_of_the_control_plane(make_site: Callable[..., Site]) -> None:
    place = make_site(profile="full", driver="fake", network="bind-all", computes=2)
    compute = Compute(place, Cloud(place).supervisor)
    compute.configure()
    for host, cell in compute.hosts().items():
        daemon = next(one for one in compute.daemons() if one.name == f"nova-compute-{host}")
        files = [Path(str(word)) for word in daemon.argv if str(word).endswith(".conf")]
        assert files == [compute.host_conf(host)]
        text = files[0].read_text()
        assert place.transport(f"nova_{cell}") in text
        for secret in ("mysql", *(place.password(f"bus {vhost}") for vhost in VHOSTS if vhost != f"nova_{cell}")):
            assert secret not in text
        for owner in ("metadata", "seal"):
            assert place.password(owner) not in text
        helper = next(line for line in text.splitlines() if line.startswith("helper_command"))
        assert place.user_password("nova") not in Path(helper.split()[-1]).read_text()


def test_a_cells_conductor_knows_its_own_cell_alone(make_site: Callable[..., Site]) -> None:
    place = make_site(profile="full", driver="fake", network="bind-all")
    compute = Compute(place, Cloud(place).supervisor)
    compute.configure()
    text = compute.cell_conf("cell1").read_text()
    assert place.database("nova_cell1") in text
    for other in ("nova_api", "nova_cell0", "nova_cell2"):
        assert place.password(f"database {other}") not in text
    for vhost in ("nova", "nova_cell2"):
        assert place.password(f"bus {vhost}") not in text


def test_the_seal_of_flows_is_a_secret(place: Site) -> None:
    compute = Compute(place, Cloud(place).supervisor)
    compute.configure()
    keys = configuration.load(["--config-file", str(compute.conf)]).kilonova.flow_seal_keys
    assert keys == [place.password("seal")]


def test_no_console_of_a_guest_is_open_to_passers_by(place: Site) -> None:
    compute = Compute(place, Cloud(place).supervisor)
    compute.configure()
    assert not configuration.load(["--config-file", str(compute.conf)]).vnc.enabled


def test_nothing_has_a_password_that_everybody_knows(place: Site) -> None:
    cloud = Cloud(place)
    for service in cloud.services():
        if service.name != "mariadb":
            service.configure()
    credentials.write(place)
    files = [file for file in (*place.etc.rglob("*"), *place.root.glob("*openrc")) if file.is_file()]
    assert files
    guessable = re.compile(r"password\W{0,3}[=:]\s*secret|:secret@|fixed_key = 0123|shared_secret = secret")
    for file in files:
        assert not guessable.search(file.read_text()), file
        assert file.stat().st_mode & 0o077 == 0, file


def test_no_password_is_an_argument_or_logged(place: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody on the machine can read the arguments of a process, and they are logged."""
    ran: list[str] = []

    def note(argv: Sequence[object], *args: Any, **options: Any) -> str:
        ran.append(" ".join(map(str, argv)))
        return ""

    for module in (cinder, glance, keystone, kilonova, mariadb, neutron, placement):
        monkeypatch.setattr(module, "run", note)
    monkeypatch.setattr(mariadb.os, "getuid", lambda: 1000)
    cloud = Cloud(place)
    monkeypatch.setattr(cloud.supervisor, "start", lambda *daemons: None)
    for service in cloud.services():
        if service.name not in ("ovn", "guest image"):
            service.configure()
            service.set_up()
    ran += [" ".join(map(str, daemon.argv)) for daemon in cloud.daemons()]
    assert any("create_cell" in words for words in ran)
    owners = [f"user {user}" for user, _, _ in keystone.GRANTS]
    owners += [f"database {name}" for name in mariadb.DATABASES] + [f"bus {vhost}" for vhost in VHOSTS]
    secrets = [place.password(owner) for owner in (*owners, "metadata", "seal", "erlang")]
    assert not [words for words in ran if any(secret in words for secret in (*secrets, place.key))]


@pytest.mark.parametrize("profile", ["embedded", "full"])
def test_cells_are_mapped_to_the_databases_that_are_made(
    make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    place = make_site(driver="fake", network="bind-all", profile=profile)
    compute = Compute(place, Cloud(place).supervisor)
    made, mapped = set(), set()

    def manage(self: Compute, *commands: Sequence[str], conf: Path | None = None) -> str:
        own = configuration.load(["--config-file", str(conf or self.conf)]).database.connection
        for words in commands:
            given = dict(itertools.pairwise(words)).get("--database_connection")
            if words[0] == "db":
                made.add(own)
            elif words[1] == "map_cell0":
                mapped.add(given or urls.with_suffix(own, "_cell0"))
            elif words[1] == "create_cell":
                mapped.add(given or own)
        return ""

    monkeypatch.setattr(Compute, "manage", manage)
    compute.prepare()
    assert mapped == made == {compute.database_url(f"nova_{cell}") for cell in ("cell0", *compute.cells)}


def test_an_account_of_mariadb_may_do_nothing_outside_of_its_database(make_site: Callable[..., Site]) -> None:
    place = make_site(profile="full", driver="fake", network="bind-all")
    service = mariadb.Mariadb(place, Cloud(place).supervisor)
    grants = [statement for statement in service.account("nova_cell1") if statement.startswith("GRANT")]
    assert grants == [
        "GRANT ALL ON `nova\\_cell1`.* TO 'nova_cell1'@'127.0.0.1'",
        "GRANT ALL ON `nova\\_cell1\\_kilonova`.* TO 'nova_cell1'@'127.0.0.1'",
    ]
    assert len(service.account("keystone")) == 3


def test_memcached_has_no_port(make_site: Callable[..., Site]) -> None:
    place = make_site(profile="full", driver="fake", network="bind-all")
    (daemon,) = memcached.Memcached(place, Cloud(place).supervisor).daemons()
    words = [str(word) for word in daemon.argv]
    assert "-p" not in words
    assert words[words.index("-a") + 1] == "0600"


def test_every_daemon_but_one_can_be_asked(place: Site) -> None:
    unasked = [daemon.name for daemon in Cloud(place).daemons() if daemon.question is None]
    assert unasked == (["neutron-maintenance"] if place.full and place.settings.network == "ovn" else [])


def test_a_daemon_is_restarted_by_its_name_and_a_service_with_all_of_them(
    make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Two(Service):
        name = "two"

        def daemons(self) -> list[Daemon]:
            return [Daemon("left", ["sleep", "60"]), Daemon("right", ["sleep", "60"])]

    cloud = Cloud(make_site(driver="fake", network="bind-all"))
    monkeypatch.setattr(cloud, "services", lambda: [Two(cloud.site, cloud.supervisor)])
    Two(cloud.site, cloud.supervisor).start()
    first = {name: cloud.supervisor.pid(name) for name in ("left", "right")}
    told: list[str] = []
    try:
        cloud.restart("right", told.append)
        second = {name: cloud.supervisor.pid(name) for name in first}
        assert second["left"] == first["left"]
        assert second["right"] not in (None, first["right"])
        cloud.restart("two", told.append)
        assert None not in {cloud.supervisor.pid(name) for name in first}
        assert told == ["right", "right", "left"]
        with pytest.raises(CloudError, match="there is no daemon up; there are left, right"):
            cloud.restart("up")
    finally:
        for name in first:
            cloud.supervisor.stop(name)


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
