"""Secrets of a flow: the administrator's password, injected files, the user's token.

They are needed again when a flow is resumed, and must not be readable in a copy of the database. They are stored as
one Fernet token (AES-128-CBC with HMAC-SHA256) and dropped when the flow ends. Which key: docs/decisions/0005-flows.md.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from oslo_config import cfg


class CannotOpen(Exception):
    """Another process closed it, with a key that is not ours."""


class Seal:
    """Closes and opens what may not be read at rest. The first key closes, every key opens (for rotation)."""

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys:
            raise ValueError("a seal needs at least one key")
        self._keys = list(keys)
        self._fernet: Any = None

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Seal:
        """By `[kilonova] flow_seal_keys`, else by what the control plane knows and a copy of the database does not."""
        keys = conf.kilonova.flow_seal_keys
        if keys:
            return cls(keys)
        return cls([conf.api_database.connection or conf.database.connection or "kilonova"])

    def close(self, secrets: Mapping[str, Any]) -> str | None:
        """The secrets as text for the database; None if there are none."""
        kept = {name: value for name, value in secrets.items() if value}
        if not kept:
            return None
        return str(self._cipher().encrypt(msgspec.json.encode(kept)).decode())

    def open(self, sealed: str | None) -> dict[str, Any]:
        """What was closed; empty when nothing was. Raises CannotOpen when no key fits."""
        if sealed is None:
            return {}
        from cryptography.fernet import InvalidToken

        try:
            opened: dict[str, Any] = msgspec.json.decode(self._cipher().decrypt(sealed.encode()))
        except InvalidToken:
            raise CannotOpen("sealed with a key that [kilonova] flow_seal_keys does not hold") from None
        return opened

    def _cipher(self) -> Any:
        # Imported at first use: reads never need it, and it costs megabytes.
        if self._fernet is None:
            from cryptography.fernet import Fernet, MultiFernet

            self._fernet = MultiFernet([Fernet(_derive(key)) for key in self._keys])
        return self._fernet


def _derive(key: str) -> bytes:
    return base64.urlsafe_b64encode(hashlib.scrypt(key.encode(), salt=b"kilonova flow", n=2**12, r=8, p=1, dklen=32))
