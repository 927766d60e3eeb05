"""The compute API for any WSGI server: `kilonova.wsgi.osapi_compute:application`, made when it is first asked for."""

from __future__ import annotations

from typing import Any

from kilonova.base import starting


def __getattr__(name: str) -> Any:
    if name != "application":
        raise AttributeError(name)
    with starting.undisturbed():
        from kilonova.cmd import assembly, process
        from kilonova.wsgi import files

        made = assembly.api(assembly.Parts(process.configure("nova-api", files.arguments())))
    globals()[name] = made
    return made
