"""`./run test real` brings its own hypervisor, unless the environment names one (KILONOVA_LIBVIRT_URI)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from tests.real.clouds import Started, bring_hypervisor, cloud_up

FULL_PORT_OFFSET = 13000
STARTED = contextlib.ExitStack()


def pytest_configure(config: pytest.Config) -> None:
    """Before the tests' modules are imported: those of libvirt look for it then."""
    if config.option.markexpr == "real and not chaos" and not hasattr(config, "workerinput"):
        bring_hypervisor(STARTED)


def pytest_unconfigure(config: pytest.Config) -> None:
    STARTED.close()


@pytest.fixture(scope="session")
def full() -> Iterator[Started]:
    """A cloud of profile full: MariaDB, RabbitMQ, three cells, three hosts with fake guests."""
    with cloud_up("fake", FULL_PORT_OFFSET, ["--profile", "full", "--computes", "3"]) as cloud:
        yield cloud
