"""What operators can call, as data: programs, actions, arguments, exit codes, upgrade checks."""

from __future__ import annotations

import importlib.metadata
from typing import Any

from kilonova.cmd import manage, status
from kilonova.cmd.manage.actions import Action, Argument
from kilonova.db import online


def export_cli() -> dict[str, Any]:
    categories: dict[str, Any] = {"version": {"args": []}}
    for action in manage.every_action():
        if not action.takes_anything:
            categories.setdefault(action.category, {"actions": {}})["actions"][action.name] = _action(action)
    scripts = importlib.metadata.distribution("kilonova").entry_points.select(group="console_scripts")
    return {
        "nova-manage": categories,
        "nova-status": {"upgrade": {"actions": {"check": {"args": []}}}, "version": {"args": []}},
        "nova-policy": {},
        "entry_points": {"console_scripts": {script.name: script.value for script in scripts}},
        "upgrade_checks": list(status.CHECKS),
        "online_data_migrations": list(online.MIGRATIONS),
    }


def _action(action: Action) -> dict[str, Any]:
    return {
        "documented_exit_codes": sorted(action.exit_codes),
        "args": [_argument(one) for one in action.arguments],
    }


def _argument(one: Argument) -> dict[str, Any]:
    settings = one.settings
    positional = not one.flags[0].startswith("-")
    found: dict[str, Any] = {"flags": None if positional else list(one.flags)}
    if settings.get("action") == "store_true":
        found |= {"nargs": 0, "action": "StoreTrueAction"}
    for name in ("nargs", "required"):
        if name in settings:
            found[name] = settings[name]
    if "type" in settings:
        found["type"] = settings["type"].__name__
    return found
