"""`./run test real` brings its own hypervisor, unless the environment names one (KILONOVA_LIBVIRT_URI)."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real.clouds import Started, cloud_up

from kilonova.cloud import library

FULL_PORT_OFFSET = 13000
STARTED = contextlib.ExitStack()


def pytest_configure(config: pytest.Config) -> None:
    """Before the tests' modules are imported: those of libvirt look for it then."""
    alone = config.option.markexpr == "real and not chaos" and not hasattr(config, "workerinput")
    if not alone or os.getuid() != 0 or "KILONOVA_LIBVIRT_URI" in os.environ:
        return
    root = Path(STARTED.enter_context(tempfile.TemporaryDirectory(prefix="kn-hv-", ignore_cleanup_errors=True)))
    hypervisor = STARTED.enter_context(library.hypervisor(root))
    os.environ["KILONOVA_LIBVIRT_URI"] = hypervisor.uri
    os.environ["KILONOVA_GUEST_IMAGE"] = str(hypervisor.image)


def pytest_unconfigure(config: pytest.Config) -> None:
    STARTED.close()


@pytest.fixture(scope="session")
def full() -> Iterator[Started]:
    """A cloud of profile full: MariaDB, RabbitMQ, three cells, three hosts with fake guests."""
    with cloud_up("fake", FULL_PORT_OFFSET, ["--profile", "full", "--computes", "3"]) as cloud:
        yield cloud
