"""URLs of cells as templates: `{username}`, `{password}`, `{hostname}` ... are taken from the service's own URL."""

from __future__ import annotations

import logging
import urllib.parse

from kilonova.base.secrets import masked

LOG = logging.getLogger(__name__)


def fill(template: str, own: str | None) -> str:
    """The template filled in from the service's own URL. Without one, or when a name is unknown, it stays as it is."""
    if own is None:
        if "{" in template:
            LOG.error("the URL %s of a cell is a template; this service has no URL to fill it from", masked(template))
        return template
    try:
        return template.format(**_parts(own))
    except (KeyError, IndexError, ValueError):
        LOG.exception("the URL of a cell cannot be filled in")
        return template


def _parts(url: str) -> dict[str, object]:
    parsed = urllib.parse.urlparse(url)
    first = _endpoint(parsed.netloc.split(",")[0])
    parts: dict[str, object] = {
        **first,
        "scheme": parsed.scheme,
        "query": parsed.query,
        "fragment": parsed.fragment,
        "path": parsed.path.lstrip("/"),
    }
    endpoints = parsed.netloc.split(",")
    if len(endpoints) > 1:
        for number, endpoint in enumerate(endpoints, start=1):
            parts |= {f"{key}{number}": value for key, value in _endpoint(endpoint).items()}
    return parts


def _endpoint(netloc: str) -> dict[str, object]:
    """`user:password@host:port` (each part may be missing) by name; an address of IPv6 keeps its brackets out."""
    login, _, place = netloc.rpartition("@")
    username, _, password = login.partition(":")
    host, port = place, ""
    if place.startswith("["):
        host, _, rest = place[1:].partition("]")
        port = rest.lstrip(":")
    elif ":" in place:
        host, _, port = place.rpartition(":")
    return {
        "username": username or None,
        "password": password or None,
        "hostname": host or None,
        "port": int(port) if port.isdigit() else None,
    }
