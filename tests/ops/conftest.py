"""A control plane per test, on databases made once."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from tests.ops.control_plane import ControlPlane
from tests.unit.db.conftest import templates

__all__ = ["cloud", "templates"]


@pytest.fixture
def cloud(tmp_path: pathlib.Path, templates: pathlib.Path, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """Two hosts, or those that `@pytest.mark.hosts("a", "b", ...)` names."""
    marker = request.node.get_closest_marker("hosts")
    made = ControlPlane(tmp_path, templates, marker.args if marker else ("h1", "h2"))
    yield made
    made.close()
