"""The world of tests/unit/compute."""

from tests.unit.compute.conftest import templates, world

__all__ = ["templates", "world"]
