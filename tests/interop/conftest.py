"""`./run test interop` brings a broker and a hypervisor of its own, unless the environment names them
(TEST_TRANSPORT_URL, KILONOVA_LIBVIRT_URI).
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import pytest
from tests.real import broker
from tests.real.clouds import bring_hypervisor

# What these assert says what it saw, as tests do.
pytest.register_assert_rewrite("tests.interop.mixed_cloud", "tests.interop.libvirt_host", "tests.interop.takeover")

STARTED = contextlib.ExitStack()


def pytest_configure(config: pytest.Config) -> None:
    """Before the tests' modules are imported: they look for the broker then."""
    if config.option.markexpr != "interop" or hasattr(config, "workerinput"):
        return
    bring_hypervisor(STARTED)
    if "TEST_TRANSPORT_URL" not in os.environ and broker.rabbitmq_found():
        root = Path(STARTED.enter_context(tempfile.TemporaryDirectory(prefix="kn-mq-", ignore_cleanup_errors=True)))
        os.environ["TEST_TRANSPORT_URL"] = STARTED.enter_context(broker.rabbitmq(root))


def pytest_unconfigure(config: pytest.Config) -> None:
    STARTED.close()
