"""Database URLs as operators write them."""

from __future__ import annotations

import sqlalchemy as sa

DRIVERS = {
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
    "mariadb+pymysql": "mysql+pymysql",
    "postgresql": "postgresql+psycopg2",
    "postgres": "postgresql+psycopg2",
}
"""The driver of a URL that names none."""


def parse(url: str, parameters: str = "") -> sa.URL:
    """The URL with the driver we use and with extra `name=value&...` parameters. Raises sqlalchemy's ArgumentError."""
    parsed = _made(url)
    if parsed.drivername in DRIVERS:
        parsed = parsed.set(drivername=DRIVERS[parsed.drivername])
    if parameters:
        parsed = parsed.update_query_string(parameters, append=True)
    return parsed


def text(url: sa.URL) -> str:
    """The URL as a string, password included."""
    return url.render_as_string(hide_password=False)


def readable(url: str) -> bool:
    """Whether it is the URL of a database at all."""
    try:
        _made(url)
    except sa.exc.ArgumentError:
        return False
    return True


def with_suffix(url: str, suffix: str) -> str:
    """The URL of the database of the same server whose name has the suffix. Raises sqlalchemy's ArgumentError."""
    parsed = _made(url)
    return text(parsed.set(database=f"{parsed.database}{suffix}"))


def _made(url: str) -> sa.URL:
    try:
        return sa.make_url(url)
    except (ValueError, sa.exc.ArgumentError):
        # The reason quotes what was taken for the port: perhaps a part of the password.
        raise sa.exc.ArgumentError("it is not the URL of a database") from None
