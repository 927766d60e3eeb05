"""Host names of servers: made of what a server is called, or given and checked. Either is a name that DNS has."""

import re
import unicodedata
from typing import Final

from kilonova.wire.http.faults import bad_request

LONGEST_LABEL: Final = 63
LONGEST_NAME: Final = 253
_SEPARATORS: Final = re.compile(r"[ _.]")
_NOT_IN_LABEL: Final = re.compile(r"[^a-z0-9-]+")
_LABEL: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?")


def made_of(name: str) -> str:
    """A label made of a server's name (RFC 952, RFC 1123); empty when nothing is left.

    It is Nova's wherever Nova's is a label. Letters of Latin-1 lose their accents, which Nova leaves in.
    """
    latin = name.encode("latin-1", "ignore").decode("latin-1")[:LONGEST_LABEL]
    plain = unicodedata.normalize("NFKD", _SEPARATORS.sub("-", latin)).encode("ascii", "ignore").decode("ascii")
    return _NOT_IN_LABEL.sub("", plain.lower())[:LONGEST_LABEL].strip("-")


def of_server(given: str | None, name: str, uuid: str, index: int, count: int) -> str:
    """The host name of the ``index``th of ``count`` servers called ``name``."""
    if given:
        return given
    found = made_of(name)
    if not found:
        return f"Server-{uuid}"
    if count == 1:
        return found
    number = f"-{index + 1}"
    return found[: LONGEST_LABEL - len(number)].rstrip("-") + number


def checked(given: str | None) -> str | None:
    """A host name that was asked for. Raises `Fault` 400 for what no DNS takes, and so no network's."""
    if given and not is_name(given):
        raise bad_request(
            f"Invalid input for field/attribute hostname. {given!r} is not a DNS name: labels of letters, digits and "
            f"inner hyphens, each of at most {LONGEST_LABEL} characters, joined by dots."
        )
    return given


def is_name(text: str) -> bool:
    """Whether it is a label, or several that are joined by dots, of which the last is not a number."""
    labels = text.split(".")
    numeric = len(labels) > 1 and labels[-1].isdigit()
    return len(text) <= LONGEST_NAME and not numeric and all(_LABEL.fullmatch(label) for label in labels)
