"""The programs by their names. Each is imported when it is called: what it needs may not be installed."""

from __future__ import annotations

import functools
import importlib
import os
import select
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
UNREAD = 141
"""What a shell says of a program that SIGPIPE has ended."""


def run(name: str) -> int:
    """Run a program; its exit code."""
    try:
        code = int(importlib.import_module(MODULES[name]).main() or 0)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        if not _reader_gone():
            raise
        return UNREAD
    except ModuleNotFoundError as exc:
        line = extras.explained(exc)
        if line is None:
            raise
        print(f"{name}: {line}", file=sys.stderr)
        return UNUSABLE


def _reader_gone() -> bool:
    """Whether nobody reads our output any more, as after `| head`. The interpreter then need not try once more."""
    asked = select.poll()
    asked.register(sys.stdout.fileno(), 0)
    gone = any(event & select.POLLERR for _, event in asked.poll(0))
    if gone:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return gone


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
