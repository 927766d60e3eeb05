"""What MariaDB and PostgreSQL refuse takes no cell away, and rows that were never changed are in lists by time."""

from __future__ import annotations

import pytest
from tests.real.database_fixtures import database_server, databases
from tests.unit.db.test_instances import check_times

from kilonova import conf as configuration
from kilonova.base import ids
from kilonova.db.cell import instances
from kilonova.db.cells import Cell, Cells
from kilonova.db.engine import Database, DatabaseError, Tx
from kilonova.db.outcomes import InvalidFilterError

__all__ = ["database_server", "databases"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_o1_a_row_that_was_never_changed_has_a_time(databases: tuple[Database, Database]) -> None:
    check_times(databases[1], ids.new_uuid())


@pytest.mark.parametrize("filters", [{"display_name": "("}, {"ramdisk_id": "[[:nonsense:]]"}])
def test_d14_a_filter_that_the_database_refuses_is_the_filters_fault(
    databases: tuple[Database, Database], filters: dict[str, str]
) -> None:
    conf = configuration.new()
    conf([], default_config_files=[])
    cell = Cell(1, "u", "n", "none:///", databases[1], False)
    cells = Cells(conf)
    with pytest.raises(InvalidFilterError):
        cells.scatter(lambda cell: cell.database.query(instances.instance_list, filters), [cell])
    with pytest.raises(InvalidFilterError):
        cells.ask(lambda cell: cell.database.query(instances.instance_list, filters), cell)


@pytest.mark.parametrize("statement", ["SELECT FROM", "SELECT nothing FROM instances", "SELECT 1 FROM instances WHERE"])
def test_d14_no_other_error_makes_servers_vanish(databases: tuple[Database, Database], statement: str) -> None:
    conf = configuration.new()
    conf([], default_config_files=[])
    cell = Cell(1, "u", "n", "none:///", databases[1], False)

    def look(tx: Tx) -> None:
        tx.exec_driver_sql(statement)

    with pytest.raises(DatabaseError):
        Cells(conf).scatter(lambda cell: cell.database.query(look), [cell])
