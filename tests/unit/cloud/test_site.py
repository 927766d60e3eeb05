import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kilonova.cloud import addresses, cli, credentials, ini, site
from kilonova.cloud.errors import CloudError
from kilonova.cloud.site import PORTS, Settings, Site


def test_settings_and_ports_survive(make_site: Callable[..., Site]) -> None:
    place = make_site(profile="full", driver="fake", computes=3)
    again = site.load(place.root)
    assert again == place


def test_no_cloud_is_no_cloud(tmp_path: Path) -> None:
    assert site.load(tmp_path) is None


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "cloud.json").write_text("{")
    with pytest.raises(CloudError, match=r"is damaged.*remove"):
        site.load(tmp_path)


def test_ports_move_together_and_a_taken_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "port_free", lambda port: port != 15000)
    ports = site.choose_ports(10000)
    assert ports["keystone"] not in (5000, 15000)
    assert ports["glance"] == PORTS["glance"] + 10000
    assert len(set(ports.values())) == len(ports)


def test_embedded_is_sqlite_and_memory(make_site: Callable[..., Site]) -> None:
    place = make_site()
    assert place.database("keystone").endswith("/keystone.db?plugin=kilonova_sqlite")
    assert place.transport("nova") == "fake://"
    full = make_site(profile="full")
    assert full.database("keystone").startswith("mysql+pymysql://")
    assert full.transport("nova").startswith("rabbit://")


def test_clouds_on_one_machine_share_no_network() -> None:
    plans = [addresses.plan(number) for number in range(addresses.MOST_CLOUDS)]
    for field in ("public", "private", "pool", "integration", "external"):
        assert len({getattr(plan, field) for plan in plans}) == len(plans)


def test_the_first_free_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses.socket, "if_nameindex", lambda: [(1, "lo"), (2, "br-int")])
    monkeypatch.setattr(addresses, "routes", lambda: {"0.0.0.0/0", addresses.plan(1).private})
    assert addresses.free_number() == 2


def test_no_number_left(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [(n, addresses.plan(n).integration) for n in range(addresses.MOST_CLOUDS)]
    monkeypatch.setattr(addresses.socket, "if_nameindex", lambda: names)
    with pytest.raises(CloudError):
        addresses.free_number()


def test_routes_of_the_kernel(tmp_path: Path) -> None:
    table = tmp_path / "route"
    head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
    rows = [
        "eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0",
        "br-ex\t000418AC\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0",
    ]
    table.write_text(head + "\n".join(rows) + "\n")
    assert addresses.routes(table) == {"0.0.0.0/0", addresses.plan(0).public}


def test_ini() -> None:
    text = ini.render({"a": {"x": True, "y": ["1", "2"], "z": None}, "b": {"n": 3}})
    assert text == "[a]\nx = true\ny = 1\ny = 2\n\n[b]\nn = 3\n"


def test_files_with_passwords_are_private(make_site: Callable[..., Site]) -> None:
    place = make_site()
    credentials.write(place)
    assert (place.root / "clouds.yaml").stat().st_mode & 0o077 == 0
    assert (place.root / "cloud.json").stat().st_mode & 0o077 == 0
    assert "OS_PROJECT_NAME=demo" in (place.root / "demo-openrc").read_text()
    assert place.settings == Settings()


def test_nobody_else_looks_into_the_state_folder(make_site: Callable[..., Site]) -> None:
    place = make_site()
    for folder in (place.root, place.etc, place.log, place.run, place.data, place.done):
        assert folder.stat().st_mode & 0o777 == 0o700
    # One that was made open is closed by the next start.
    place.root.chmod(0o755)
    place.prepare()
    assert place.root.stat().st_mode & 0o777 == 0o700


def test_every_owner_has_a_password_of_its_own_in_every_cloud(make_site: Callable[..., Site], tmp_path: Path) -> None:
    place = make_site(profile="full")
    owners = ["user admin", "user demo", "database nova_api", "database nova_cell1", "bus nova_cell1", "metadata"]
    words = {place.password(owner) for owner in owners}
    assert len(words) == len(owners)
    assert all(len(word) == 40 and word.isalnum() for word in words)
    again = site.load(place.root)
    assert again is not None
    assert {again.password(owner) for owner in owners} == words
    other = Site(tmp_path / "other", place.settings, place.ports)
    assert words.isdisjoint({other.password(owner) for owner in owners})
    assert place.key not in repr(place)


def test_accounts_reach_no_further_than_their_database_and_bus(make_site: Callable[..., Site]) -> None:
    place = make_site(profile="full")
    urls = [place.transport(vhost) for vhost in ("nova", "nova_cell1")]
    urls += [place.database(name) for name in ("nova_api", "nova_cell1")]
    assert len({url.split("@")[0] for url in urls}) == len(urls)
    assert place.transport("nova_cell1").startswith("rabbit://nova_cell1:")


def test_a_cloud_of_an_older_version_is_refused_and_can_be_removed(make_site: Callable[..., Site]) -> None:
    place = make_site(driver="fake", network="bind-all")
    kept = json.loads((place.root / "cloud.json").read_text())
    del kept["key"]
    kept["settings"]["password"] = "secret"
    (place.root / "cloud.json").write_text(json.dumps(kept))
    old = site.load(place.root)
    assert old is not None
    with pytest.raises(CloudError, match="password that everybody knows"):
        old.refuse_known_password()
    assert cli.main(["up", "--state", str(place.root)]) == 1
    assert cli.main(["down", "--wipe", "--state", str(place.root)]) == 0


def test_a_folder_with_other_things_in_it_is_not_taken(tmp_path: Path) -> None:
    """`down --wipe` would remove them."""
    site.create(tmp_path / "fresh", Settings())
    site.create(tmp_path, Settings())
    (tmp_path / "letter").touch()
    with pytest.raises(CloudError, match=r"other things in it \(letter\)"):
        site.create(tmp_path, Settings())
    with pytest.raises(CloudError, match="not a folder"):
        site.create(tmp_path / "letter", Settings())


def test_a_folder_of_somebody_else_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site.os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(CloudError, match="another user"):
        site.create(tmp_path, Settings())


def test_ports_that_moved_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(site, "port_free", lambda port: port not in (5000, 3306))
    place = Site(tmp_path, Settings(), site.choose_ports(0))
    assert place.moved_ports() == {"keystone": (5000, 35000)}
    full = Site(tmp_path, Settings(profile="full"), place.ports)
    assert set(full.moved_ports()) == {"keystone", "mariadb"}
    moved = Site(tmp_path, Settings(port_offset=10000), site.choose_ports(10000))
    assert moved.moved_ports() == {}
