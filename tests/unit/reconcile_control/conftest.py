"""The stage of the conductor's tests."""

from tests.unit.conductor.conftest import stage, templates

__all__ = ["stage", "templates"]
