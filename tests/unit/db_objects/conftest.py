"""The databases of tests/unit/db."""

from tests.unit.db.conftest import api_db, cell_db, templates
from tests.unit.db_objects.remote import host

__all__ = ["api_db", "cell_db", "host", "templates"]
