"""Identifiers."""

from __future__ import annotations

import uuid


def new_uuid() -> str:
    """A random UUID in its canonical text form."""
    return str(uuid.uuid4())


def new_request_id() -> str:
    """A request id as OpenStack services write it: `req-` and a UUID."""
    return f"req-{uuid.uuid4()}"


def is_uuid(text: object) -> bool:
    """Whether the text is 32 hexadecimal digits, with or without hyphens (any case, braces and urn prefix allowed)."""
    try:
        return str(uuid.UUID(str(text))).replace("-", "") == _digits(str(text))
    except (TypeError, ValueError, AttributeError):
        return False


def _digits(text: str) -> str:
    return text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "").lower()
