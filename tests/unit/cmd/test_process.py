"""A process starts its services in order, and ends them in reverse within the time that is configured."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest

from kilonova import conf as configuration
from kilonova.cmd import process


class Asked:
    """A service that takes `seconds` to stop."""

    def __init__(self, said: list[tuple[str, float]], name: str, seconds: float = 0.0) -> None:
        self.said, self.name, self.seconds = said, name, seconds

    def start(self) -> None:
        self.said.append((self.name, 0.0))

    def stop(self, timeout: float) -> None:
        self.said.append((self.name, timeout))
        time.sleep(self.seconds)


class Signalled(Asked):
    """The last to start: somebody asks the process to end."""

    def start(self) -> None:
        super().start()
        signal.raise_signal(signal.SIGTERM)


@pytest.fixture
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize(("for_work", "most"), [(25, 25), (100, 30)])
def test_services_have_the_configured_time_to_end(for_work: int, most: int) -> None:
    conf = configuration.load([])
    conf.set_override("graceful_shutdown_timeout", 40)
    conf.set_override("manager_shutdown_timeout", for_work)
    said: list[tuple[str, float]] = []
    closed: list[bool] = []
    services = [Asked(said, "first"), Signalled(said, "last", seconds=0.2)]
    assert process.run(conf, services, [lambda: closed.append(True)]) == 0
    assert [name for name, _ in said] == ["first", "last", "last", "first"]
    of_last, of_first = (left for _, left in said[2:])
    assert most - 5 < of_last <= most
    assert of_first <= of_last - 0.2
    assert closed == [True]


@pytest.mark.parametrize(
    "words", [["--config-file", "/nowhere/nova.conf"], ["--log-config-append", "/nowhere/log.conf"]]
)
def test_a_configuration_that_cannot_be_read_is_said_in_one_line(words: list[str]) -> None:
    with pytest.raises(SystemExit, match=r"^nova-compute: .*/nowhere/"):
        process.configure("nova-compute", words)
