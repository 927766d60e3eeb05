from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.cloud import site
from kilonova.cloud.daemons import Supervisor
from kilonova.cloud.site import PORTS, Settings, Site


@pytest.fixture
def make_site(tmp_path: Path) -> Callable[..., Site]:
    """A site that touches nothing but the test's folder."""

    def make(**settings: Any) -> Site:
        ports = {name: port + 40000 if port < 20000 else port for name, port in PORTS.items()}
        place = Site(tmp_path / "state", Settings(**settings), ports)
        place.prepare()
        return place

    return make


@pytest.fixture
def supervisor(make_site: Callable[..., Site]) -> Iterator[Supervisor]:
    one = Supervisor(make_site())
    yield one
    for name in one.names():
        one.stop(name, within=1)


@pytest.fixture(autouse=True)
def no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KILONOVA_CLOUD_NOVA_VENV", raising=False)
    monkeypatch.setattr(site, "port_free", lambda port: True)
