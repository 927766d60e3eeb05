"""`nova-manage CATEGORY ACTION`: databases and cells."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from kilonova.cmd.command import Program

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


def every_action() -> Iterator[Action]:
    """Every action."""
    from kilonova.cmd.manage import (
        aggregates,
        archive,
        audit,
        cell_hosts,
        cell_instances,
        cell_setup,
        cells,
        heal,
        image_properties,
        ironic,
        limits,
        machine_types,
        online,
        schema,
        volume_attachments,
    )

    cells_and_databases = (schema, archive, online, ironic, cell_setup, cells, cell_hosts, cell_instances)
    of_servers = (machine_types, image_properties, volume_attachments)
    of_others = (heal, aggregates, audit, limits)
    for module in (*cells_and_databases, *of_servers, *of_others):
        yield from module.ACTIONS


def main(argv: list[str] | None = None) -> int:
    """Run one action; its exit code, or the action's own (mostly 255) when something unforeseen happened."""
    return _PROGRAM.main(argv)


def _run(conf: cfg.ConfigOpts) -> int:
    from kilonova.cmd.manage.session import Session

    return int(conf.category.action.call(Session(conf), conf.category))


def _words() -> dict[str, list[str]]:
    """The actions by category."""
    found: dict[str, list[str]] = {}
    for action in every_action():
        found.setdefault(action.category, []).append(action.name)
    return found


def _declare(subparsers: Any) -> None:
    categories: dict[str, Any] = {}
    for action in every_action():
        if action.category not in categories:
            parser: argparse.ArgumentParser = subparsers.add_parser(action.category, help=_HELP[action.category])
            categories[action.category] = parser.add_subparsers(dest="action_name", required=True)
        action.add_parser(categories[action.category])


_PROGRAM = Program("nova-manage", _declare, _words, _run, lambda conf: int(conf.category.action.unforeseen))
