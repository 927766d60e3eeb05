"""URLs of cells on the command line: defaults from the configuration, checks."""

from __future__ import annotations

import urllib.parse

from kilonova.base.secrets import masked
from kilonova.cmd.manage.session import Session
from kilonova.db import templates


def transport_url_or_own(session: Session, given: str | None, *, required: bool = True) -> str | None:
    """The URL, by default that of [DEFAULT] transport_url; None (said why) if there is none or it is no URL."""
    url = given
    if not url:
        url = session.conf.transport_url
        if not url:
            if required:
                session.say("Give --transport-url: [DEFAULT] transport_url is not set.")
            return None
        session.say("No --transport-url given: that of [DEFAULT] transport_url is taken.")
    if not urllib.parse.urlparse(templates.fill(url, session.conf.transport_url)).scheme:
        session.say(f"{masked(url)} is not the URL of a message bus.")
        return None
    return str(url)


def database_or_own(session: Session, given: str | None, *, required: bool = True) -> str | None:
    """The URL, by default that of [database] connection; None (said why) if there is none."""
    if given:
        return given
    url = session.conf.database.connection
    if url:
        session.say("No --database_connection given: that of [database] connection is taken.")
        return str(url)
    if required:
        session.say("Give --database_connection: [database] connection is not set.")
    return None
