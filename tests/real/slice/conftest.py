"""One cloud for the whole slice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.real.clouds import Started, cloud_up, real_guests_possible

PORT_OFFSET = 12000


@pytest.fixture(scope="session")
def started() -> Iterator[Started]:
    """Profile embedded, with real guests where the machine allows."""
    with cloud_up("libvirt" if real_guests_possible() else "fake", PORT_OFFSET) as cloud:
        yield cloud
