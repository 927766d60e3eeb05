from collections.abc import Callable
from pathlib import Path

import pytest

from kilonova.cloud import addresses, credentials, ini, site
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
    assert "OS_PROJECT_NAME=demo" in (place.root / "demo-openrc").read_text()
    assert place.settings == Settings()
