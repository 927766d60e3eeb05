"""`nova-manage CATEGORY ACTION`: databases and cells."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from kilonova.cmd import extras
from kilonova.cmd.command import UNUSABLE, Program

if TYPE_CHECKING:
    from kilonova.cmd.manage.actions import Action

_HELP = {
    "api_db": "the API database",
    "db": "the cell databases",
    "cell_v2": "cells, and what is in which",
    "placement": "allocations in Placement",
    "volume_attachment": "volumes of servers",
    "libvirt": "machine types of servers",
    "image_property": "image properties recorded with servers",
    "limits": "quota limits",
}


_MODULES = (
    *("schema", "archive", "online", "ironic", "cell_setup", "cells", "cell_hosts", "cell_instances"),
    *("machine_types", "image_properties", "volume_attachments"),
    *("heal", "aggregates", "audit", "limits"),
)


def every_action() -> Iterator[Action]:
    """Every action. Raises ModuleNotFoundError where the extra is not installed that most of them need."""
    for name in _MODULES:
        yield from importlib.import_module(f"{__name__}.{name}").ACTIONS


def _usable() -> tuple[list[Action], str | None]:
    """The actions for which all is installed, and what the others need."""
    usable: list[Action] = []
    lacking: str | None = None
    for name in _MODULES:
        try:
            usable += importlib.import_module(f"{__name__}.{name}").ACTIONS
        except ModuleNotFoundError as exc:
            lacking = extras.explained(exc)
            if lacking is None:
                raise
    return usable, lacking


def main(argv: list[str] | None = None) -> int:
    """Run one action; its exit code, or the action's own (mostly 255) when something unforeseen happened."""
    return _PROGRAM.main(argv)


def _run(conf: cfg.ConfigOpts) -> int:
    from kilonova.cmd.manage.session import Session

    if lacking := getattr(conf.category, "lacking", None):
        print(f"ERROR: nova-manage {conf.category.name}: {lacking}", file=sys.stderr)
        return UNUSABLE
    return int(conf.category.action.call(Session(conf), conf.category))


def _words() -> dict[str, list[str]]:
    """The actions by category."""
    found: dict[str, list[str]] = {}
    for action in _usable()[0]:
        found.setdefault(action.category, []).append(action.name)
    return found


def _declare(subparsers: Any) -> None:
    categories: dict[str, Any] = {}
    usable, lacking = _usable()
    for action in usable:
        if action.category not in categories:
            parser: argparse.ArgumentParser = subparsers.add_parser(action.category, help=_HELP[action.category])
            categories[action.category] = parser.add_subparsers(dest="action_name", required=True)
        action.add_parser(categories[action.category])
    for name in _HELP.keys() - categories.keys():
        parser = subparsers.add_parser(name, help=lacking, add_help=False)
        parser.add_argument("words", nargs=argparse.REMAINDER)
        parser.set_defaults(lacking=lacking)


_PROGRAM = Program("nova-manage", _declare, _words, _run, lambda conf: int(conf.category.action.unforeseen))
