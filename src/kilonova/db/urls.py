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
    parsed = sa.make_url(url)
    if parsed.drivername in DRIVERS:
        parsed = parsed.set(drivername=DRIVERS[parsed.drivername])
    if parameters:
        parsed = parsed.update_query_string(parameters, append=True)
    return parsed


def text(url: sa.URL) -> str:
    """The URL as a string, password included."""
    return url.render_as_string(hide_password=False)


def shown(url: str) -> str:
    """The URL for people: the password hidden. What is no URL is shown as it is."""
    try:
        return sa.make_url(url).render_as_string(hide_password=True)
    except sa.exc.ArgumentError:
        return url


def with_suffix(url: str, suffix: str) -> str:
    """The URL of the database of the same server whose name has the suffix."""
    parsed = sa.make_url(url)
    return text(parsed.set(database=f"{parsed.database}{suffix}"))
