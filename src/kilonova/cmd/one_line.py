"""What an operator needs of an exception: one line, where its words say all."""

from __future__ import annotations

_OWN_WORDS = ("kilonova.", "nova.", "sqlalchemy.", "oslo_", "keystoneauth1.", "amqp.", "kombu.", "libvirt", "yaml.")
"""Packages whose exceptions say what is wrong outside of the program; others may be faults inside of it."""


def first(exc: BaseException) -> str:
    """The first line of its text: a database's goes on with the statement."""
    return str(exc).partition("\n")[0] or type(exc).__name__


def explained(exc: BaseException) -> str | None:
    """A line that says it all, None where somebody has to see where it was raised."""
    if isinstance(exc, ModuleNotFoundError):
        from kilonova.cmd import extras

        return extras.explained(exc)
    if isinstance(exc, OSError) or (type(exc).__module__ + ".").startswith(_OWN_WORDS):
        return first(exc)
    return str(exc.code) if isinstance(exc, SystemExit) else None
