"""The databases of tests/unit/db."""

from tests.unit.db.conftest import api_db, cell_db, templates

__all__ = ["api_db", "cell_db", "templates"]
