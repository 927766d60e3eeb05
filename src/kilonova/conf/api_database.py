"""Options of the API database, group `[api_database]`."""

from oslo_config import cfg

from kilonova.conf import _database

GROUP: str | None = "api_database"

OPTIONS: list[cfg.Opt] = _database.options()
