"""`nova-manage CATEGORY ACTION`: databases and cells."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from kilonova.cmd import completion

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
    "version": "the version of this program",
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
    from kilonova import __version__, conf
    from kilonova.base import log
    from kilonova.cmd.manage.session import Session

    options = conf.new()
    # oslo.messaging owns this option; here there is no bus, only its URL.
    options.register_opt(cfg.StrOpt("transport_url", default="rabbit://", secret=True))
    options.register_cli_opt(cfg.SubCommandOpt("category", title="categories", handler=_declare))
    conf.load(sys.argv[1:] if argv is None else argv, "nova-manage", options)
    log.setup(options, command=True)
    parsed = options.category
    if parsed.name == "version":
        print(__version__)
        return 0
    if parsed.name == completion.NAME:
        return completion.show(_words(), parsed.query_category)
    try:
        return int(parsed.action.call(Session(options), parsed))
    except Exception as exc:
        # The operator gets one line, and the traceback with --debug.
        print(f"ERROR: {type(exc).__name__}: {exc}", file=sys.stderr)
        logging.getLogger(__name__).debug("action failed", exc_info=True)
        return int(parsed.action.unforeseen)


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
    subparsers.add_parser("version", help=_HELP["version"])
    completion.declare(subparsers)
