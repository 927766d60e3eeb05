"""`./run test interop` brings a broker of its own, unless the environment names one (TEST_TRANSPORT_URL)."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import pytest
from tests.real import broker

STARTED = contextlib.ExitStack()


def pytest_configure(config: pytest.Config) -> None:
    """Before the tests' modules are imported: they look for the broker then."""
    alone = config.option.markexpr == "interop" and not hasattr(config, "workerinput")
    if not alone or "TEST_TRANSPORT_URL" in os.environ or not broker.rabbitmq_found():
        return
    root = Path(STARTED.enter_context(tempfile.TemporaryDirectory(prefix="kn-mq-", ignore_cleanup_errors=True)))
    os.environ["TEST_TRANSPORT_URL"] = STARTED.enter_context(broker.rabbitmq(root))


def pytest_unconfigure(config: pytest.Config) -> None:
    STARTED.close()
