"""Options of the database of the own cell (in the top-level services: cell0), group `[database]`."""

from oslo_config import cfg

from kilonova.conf import _database

GROUP: str | None = "database"

OPTIONS: list[cfg.Opt] = _database.options()
