"""A created database as facts, and what the contract wants of it: tables, columns, types, keys, indexes, revision.

On SQLite, MariaDB and PostgreSQL. Names that a database makes up (of foreign keys) do not count.
"""

from __future__ import annotations

import json
import re
from typing import Any

import sqlalchemy as sa
from tests.contract import facts
from tests.contract.fact_sheets import Facts, Kind, compare

DIALECTS = {"mysql": "mysql", "mariadb": "mysql", "postgresql": "postgresql", "sqlite": "sqlite"}
KIND = Kind("", lambda doc: {}, lambda name, contract, ours: "." in name and name.split(".")[0] in contract)


def type_name(text: str) -> str:
    """The type without what the server's defaults add: display widths, the name of its UTF-8."""
    text = re.sub(r"\b(INTEGER|BIGINT|SMALLINT)\(\d+\)", r"\1", text.upper())
    return re.sub(r"UTF8MB[34]_|UTF8_", "UTF8_", re.sub(r"CHARACTER SET UTF8(MB[34])?", "CHARACTER SET UTF8", text))


def default(text: str | None) -> str | None:
    return None if text is None or "nextval(" in text else re.sub(r"::[\w ]+$", "", text).strip("()'")


def keys(columns: Any) -> list[str]:
    return sorted(json.dumps(c) for c in columns)


def wanted(doc: dict[str, Any], dialect: str) -> Facts:
    """The contract's tables as facts of one dialect."""

    def of(value: Any) -> Any:
        return value["by_dialect"][dialect] if isinstance(value, dict) and "by_dialect" in value else value

    out: Facts = {}
    for table, t in doc["tables"].items():
        out[table] = {
            "primary key": t["primary_key"],
            "unique": keys(of(t["unique"]).values()),
            "indexes": keys([n, i["columns"], i["unique"]] for n, i in of(t["indexes"]).items()),
            "foreign keys": keys(
                [f["columns"], f["ref_table"], f["ref_columns"], f["options"]] for f in of(t["foreign_keys"])
            ),
        }
        for c in t["columns"]:
            kind = c["type"] if isinstance(c["type"], str) else c["type"][dialect]
            out[f"{table}.{c['name']}"] = {
                "type": type_name(kind),
                "nullable": ["no", "yes"][c["nullable"]],
                "server default": default(c.get("server_default")),
            }
    return out


def found(engine: sa.Engine) -> Facts:
    """The database's tables as facts."""
    inspector = sa.inspect(engine)
    out: Facts = {}
    for table in inspector.get_table_names():
        columns = inspector.get_columns(table)
        out[table] = {
            "primary key": inspector.get_pk_constraint(table)["constrained_columns"],
            "unique": keys(u["column_names"] for u in inspector.get_unique_constraints(table)),
            "indexes": keys([i["name"], i["column_names"], bool(i["unique"])] for i in inspector.get_indexes(table)),
            "foreign keys": keys(
                [f["constrained_columns"], f["referred_table"], f["referred_columns"], f.get("options") or {}]
                for f in inspector.get_foreign_keys(table)
            ),
        }
        for c in columns:
            out[f"{table}.{c['name']}"] = {
                "type": type_name(c["type"].compile(dialect=engine.dialect)),
                "nullable": ["no", "yes"][c["nullable"]],
                "server default": default(c.get("default")),
            }
    return out


def head(engine: sa.Engine, tables: Facts) -> list[str]:
    if "alembic_version" not in tables:
        return []
    with engine.connect() as connection:
        return [row[0] for row in connection.execute(sa.text("SELECT version_num FROM alembic_version"))]


def differences(database: str, url: str) -> list[dict[str, Any]]:
    """What is missing, different or in the way in the `api` or `main` database at a URL."""
    contract = facts.load(f"db_{database}")
    engine = sa.create_engine(url)
    ours = found(engine)
    want = wanted(contract, DIALECTS[engine.dialect.name])
    ours["alembic head"], want["alembic head"] = {"revision": head(engine, ours)}, {"revision": [contract["head"]]}
    engine.dispose()
    return [each for each in compare(KIND, want, ours).differences if each["sort"] != "EXTRA"]
