"""What operators can call, as data: programs, actions, arguments, exit codes, upgrade checks."""

from __future__ import annotations

import importlib.metadata
from typing import Any

from kilonova.cmd import completion, manage, policy, status
from kilonova.cmd.manage.actions import Action, Argument
from kilonova.db import online

_PLAIN: dict[str, Any] = {
    "version": {"args": []},
    completion.NAME: {"args": [{"flags": None, "nargs": "?"}]},
}
"""What every program has beside its categories."""

_ACTIONS: dict[str, dict[str, Any]] = {
    "store_true": {"nargs": 0, "action": "StoreTrueAction"},
    "append": {"action": "AppendAction"},
}
"""argparse's actions by the words that name them."""


def export_cli() -> dict[str, Any]:
    categories: dict[str, Any] = dict(_PLAIN)
    for action in manage.every_action():
        categories.setdefault(action.category, {"actions": {}})["actions"][action.name] = _action(action)
    scripts = importlib.metadata.distribution("kilonova").entry_points.select(group="console_scripts")
    return {
        "nova-manage": categories,
        "nova-status": {"upgrade": {"actions": {"check": {"args": [_argument(status.JSON)]}}}, **_PLAIN},
        "nova-policy": {"policy": {"actions": {"check": {"args": _arguments(policy.CHECK)}}}, **_PLAIN},
        "entry_points": {"console_scripts": {script.name: script.value for script in scripts}},
        "upgrade_checks": list(status.CHECKS),
        "online_data_migrations": list(online.MIGRATIONS),
    }


def _action(action: Action) -> dict[str, Any]:
    return {
        "documented_exit_codes": sorted(action.exit_codes),
        "args": _arguments(action),
    }


def _arguments(action: Action) -> list[dict[str, Any]]:
    return [_argument(one) for one in action.arguments]


def _argument(one: Argument) -> dict[str, Any]:
    settings = one.settings
    positional = not one.flags[0].startswith("-")
    found: dict[str, Any] = {"flags": None if positional else list(one.flags)}
    if positional:
        found["required"] = settings.get("nargs") not in ("?", "*")
    found |= _ACTIONS.get(settings.get("action", ""), {})
    for name in ("nargs", "required"):
        if name in settings:
            found[name] = settings[name]
    if "type" in settings:
        found["type"] = settings["type"].__name__
    return found
