"""The metadata service for any WSGI server: `kilonova.wsgi.metadata:application`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kilonova.wsgi.application import Application

if TYPE_CHECKING:
    from kilonova.cmd.assembly import Parts
    from kilonova.cmd.checks import Check


def _make(parts: Parts) -> Any:
    from kilonova.cmd import assembly

    return assembly.metadata(parts)


def _checks() -> Sequence[Check]:
    from kilonova.cmd import checks

    return checks.METADATA_UNDER_WSGI


application = Application("nova-metadata-api", _make, _checks)
application.check()
