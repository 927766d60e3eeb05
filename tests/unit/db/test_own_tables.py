"""A conductor does not start where only Nova's commands have made the tables: it would lose what it takes."""

from __future__ import annotations

import pytest

from kilonova import conf as configuration
from kilonova.cmd import assembly
from kilonova.db.engine import Database
from kilonova.db.migrations import sync
from kilonova.db.own_tables import OwnTablesMissingError
from kilonova.wire.rpc.bus import Bus


@pytest.fixture
def parts(api_db: Database, cell_db: Database) -> assembly.Parts:
    conf = configuration.new()
    conf([], default_config_files=[])
    conf.set_override("connection", str(api_db.url), "api_database")
    conf.set_override("connection", str(cell_db.url), "database")
    made = assembly.Parts(conf)
    made.bus = Bus(conf, "fake://own-tables")
    return made


@pytest.mark.parametrize(
    ("which", "command"), [("api_db", "nova-manage api_db sync"), ("cell_db", "nova-manage db sync")]
)
def test_says_what_makes_them(parts: assembly.Parts, which: str, command: str, request: pytest.FixtureRequest) -> None:
    sync.drop_own(request.getfixturevalue(which))
    with pytest.raises(OwnTablesMissingError, match=command):
        assembly.conductor(parts)
    parts.close()


def test_starts_where_they_are(parts: assembly.Parts) -> None:
    assert assembly.conductor(parts)
    parts.close()


def test_a_conductor_of_a_cell_needs_those_of_its_cell(parts: assembly.Parts, api_db: Database) -> None:
    sync.drop_own(api_db)
    parts.conf.set_override("connection", None, "api_database")
    assert assembly.conductor(parts)
    parts.close()
