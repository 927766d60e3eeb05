"""The metadata service for any WSGI server: `kilonova.wsgi.metadata:application`, made when it is first asked for."""

from __future__ import annotations

from typing import Any

from kilonova.base import starting


def __getattr__(name: str) -> Any:
    if name != "application":
        raise AttributeError(name)
    with starting.undisturbed():
        from kilonova.cmd import assembly, process
        from kilonova.wsgi import files

        made = assembly.metadata(assembly.Parts(process.configure("nova-metadata-api", files.arguments())))
    globals()[name] = made
    return made
