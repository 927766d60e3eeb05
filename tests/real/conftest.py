"""`./run test real` brings its own hypervisor, unless the environment names one (KILONOVA_LIBVIRT_URI)."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import pytest

from kilonova.cloud import library

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
