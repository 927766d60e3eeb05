"""Passwords kept out of what people read."""

from __future__ import annotations

import re

_HOST = r"(?:\[[^\]@]*\]|[^:/@,?#\[\]]*)(?::[^:/@,?#]*)?"
_ENDPOINT = rf"([^:/@,]*)(?::[^:/@,?#]*)?@({_HOST})"
_PLAIN = re.compile(rf"{_ENDPOINT}(?:,{_ENDPOINT})*(?=[/?#]|$)")
_EACH = re.compile(rf"([^:/@,]*):[^:/@,?#]*@(?={_HOST})")
_QUERY = re.compile(r"([?&](?:password|passwd|sslpassword|ssl_key_password)=)[^&]*", re.IGNORECASE)
HIDDEN = "****"


def masked(url: str) -> str:
    """The URL (of a database, or of a bus with several hosts) with every password in it replaced.

    A password is often not quoted as it must be. Where `/`, `@` and the like make it doubtful how far it reaches, all
    up to the last `@` counts as the password: rather a host's name is not seen than a part of the password is.
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        scheme, rest = "", url
    rest = _QUERY.sub(rf"\1{HIDDEN}", rest)
    plain = _PLAIN.match(rest)
    if plain is not None and "@" not in rest[plain.end() :]:
        endpoints = _EACH.sub(rf"\1:{HIDDEN}@", plain[0])
        return f"{scheme}{mark}{endpoints}{rest[plain.end() :]}"
    login, at, place = rest.rpartition("@")
    name, colon, _ = login.partition(":")
    return f"{scheme}{mark}{name}{colon}{HIDDEN if colon else ''}{at}{place}"
