"""The compute API for any WSGI server: `kilonova.wsgi.osapi_compute:application`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kilonova.wsgi.application import Application

if TYPE_CHECKING:
    from kilonova.cmd.assembly import Parts
    from kilonova.cmd.checks import Check


def _make(parts: Parts) -> Any:
    from kilonova.cmd import assembly

    return assembly.api(parts)


def _checks() -> Sequence[Check]:
    from kilonova.cmd import checks

    return checks.API_UNDER_WSGI


application = Application("nova-api", _make, _checks)
application.check()
