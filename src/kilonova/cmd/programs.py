"""The programs by their names. Each is imported when it is called: what it needs may not be installed."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping

from kilonova.cmd import extras

MODULES: Mapping[str, str] = {
    "kilonova": "kilonova.cmd.kilonova",
    "nova-api": "kilonova.cmd.api",
    "nova-compute": "kilonova.cmd.compute",
    "nova-conductor": "kilonova.cmd.conductor",
    "nova-manage": "kilonova.cmd.manage",
    "nova-metadata-api": "kilonova.cmd.metadata",
    "nova-policy": "kilonova.cmd.policy",
    "nova-scheduler": "kilonova.cmd.scheduler",
    "nova-status": "kilonova.cmd.status",
}

UNUSABLE = 1


def run(name: str) -> int:
    """Run a program; its exit code."""
    try:
        return int(importlib.import_module(MODULES[name]).main() or 0)
    except ModuleNotFoundError as exc:
        line = extras.explained(exc)
        if line is None:
            raise
        print(f"{name}: {line}", file=sys.stderr)
        return UNUSABLE


Program = Callable[[], int]

kilonova: Program = functools.partial(run, "kilonova")
nova_api: Program = functools.partial(run, "nova-api")
nova_compute: Program = functools.partial(run, "nova-compute")
nova_conductor: Program = functools.partial(run, "nova-conductor")
nova_manage: Program = functools.partial(run, "nova-manage")
nova_metadata_api: Program = functools.partial(run, "nova-metadata-api")
nova_policy: Program = functools.partial(run, "nova-policy")
nova_scheduler: Program = functools.partial(run, "nova-scheduler")
nova_status: Program = functools.partial(run, "nova-status")
