"""Print what the contract declares (``export KIND``) or judge requests and responses (``validate``), as JSON."""

import argparse
import importlib
import json
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kilonova.cmd import contract_cli, contract_parts, contract_wire
from kilonova.contract import extra_specs, microversions, nouns, ops, policies, states, surface
from kilonova.contract.cards import Errors, Guard, Op, Route
from kilonova.contract.fields import Invalid
from kilonova.contract.microversions import Versions


def declared(kind: type) -> Iterator[Any]:
    """Every `Route` or `Op` that the modules of ``contract.nouns`` and ``contract.ops`` name in capitals."""
    seen: set[int] = set()
    for package in (nouns, ops):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(found.name)).items():
                if name.isupper() and isinstance(value, kind) and id(value) not in seen:
                    seen.add(id(value))
                    yield value


def routes() -> list[Route]:
    """Every route that is declared, those of operations among them."""
    plain = list(declared(Route))
    known = {id(route) for route in plain}
    return plain + [route for op in declared(Op) for route in op.routes if id(route) not in known]


# ---------------------------------------------------------------- export


def _bounds(versions: Versions) -> Iterator[dict[str, str | None]]:
    for low, high in versions.ranges:
        yield {
            "min": None if low <= microversions.MIN else microversions.text(low),
            "max": None if high is None else microversions.text(high),
        }


def _success(route: Route) -> list[dict[str, Any]]:
    if isinstance(route.success, int):
        return [{"code": route.success}]
    return [{"code": code, **bound} for code, versions in route.success for bound in _bounds(versions)]


def _errors(errors: Errors) -> list[dict[str, Any]]:
    if all(isinstance(code, int) for code in errors):
        return [{"codes": list(errors), "min": None, "max": None}]
    return [{"codes": list(codes), **bound} for codes, versions in errors for bound in _bounds(versions)]  # type: ignore[misc]


def _route_entry(route: Route) -> Iterator[dict[str, Any]]:
    for bound in _bounds(route.versions):
        yield {
            "method": route.method,
            "path": route.path,
            "action": route.action,
            **bound,
            "removed": False,
            "success": _success(route),
            "expected_errors": _errors(route.errors),
            "policies": {rule: {"soft": False} for rule in route.policies} | {r: {"soft": True} for r in route.soft},
        }


def export_routes() -> dict[str, Any]:
    entries = [entry for route in routes() for entry in _route_entry(route)]
    gone = [
        {"method": method, "path": path, "action": action, "removed": True, **bound}
        for (method, path, action), (versions, _) in surface.removed().items()
        for bound in _bounds(versions)
    ]
    return {"routes": [*entries, *gone, {"path": "", "redirect_to": "/"}]}


def _listed(values: Any) -> list[Any] | None:
    return None if values is None else sorted(values, key=lambda value: (value is not None, value or ""))


def _rule(guard: Guard) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "lock_checked": guard.lock_checked,
        "host_required": guard.host_required,
        "host_must_be_up": guard.host_must_be_up,
        "other_guards": list(guard.other),
    }
    if guard.any_state:
        return rule | {"any_state": True}
    if guard.rejected_task:
        return rule | {"rejected": {"task_state": _listed(guard.rejected_task)}}
    return rule | {
        "vm_state": _listed(guard.vm),
        "task_state": _listed(guard.task),
        "must_have_launched": guard.must_have_launched,
    }


def _constants(namespace: type) -> dict[str, Any]:
    return {name: value for name, value in vars(namespace).items() if name.isupper()}


def export_states() -> dict[str, Any]:
    return {
        "vm_states": _constants(states.VM) | dict(states.VM_STATE_LISTS),
        "task_states": _constants(states.Task) | dict(states.TASK_STATE_LISTS),
        "power_states": {str(number): name for number, name in states.POWER_STATE_NAMES.items()},
        "instance_actions": _constants(states.Action),
        "instance_action_events": sorted(states.ACTION_EVENTS),
        "migration_types": list(_constants(states.MigrationType).values()),
        "migration_statuses": sorted(states.MIGRATION_STATUSES),
        "host_status_values": list(states.HOST_STATUSES),
        "api_status_map": {vm: dict(by_task) for vm, by_task in states.STATUS_MAP.items()},
        "rest_action_states": {
            route.key: {name: _rule(guard) for name, guard in op.guards.items()}
            for op in declared(Op)
            if op.guards
            for route in op.routes
        },
    }


def export_policies() -> dict[str, Any]:
    return {
        "rules": [
            {
                "name": rule.name,
                "check": rule.check,
                "scope_types": None if rule.scope_types is None else list(rule.scope_types),
                "operations": [{"method": operation.method, "path": operation.path} for operation in rule.operations],
                "deprecated_rule": rule.deprecated and {"name": rule.deprecated.name, "check": rule.deprecated.check},
                "deprecated_for_removal": rule.removal_since is not None,
            }
            for rule in policies.RULES
        ]
    }


def export_extra_specs() -> dict[str, Any]:
    return {
        "extra_spec_validators": {
            name: {
                "type": spec.kind,
                "pattern": spec.pattern,
                "enum": list(spec.enum) or None,
                "min": spec.low,
                "max": spec.high,
                "deprecated": spec.deprecated,
                "parameters": [{"name": name, "pattern": pattern} for name, pattern in spec.parameters.items()],
            }
            for name, spec in extra_specs.known().items()
        }
    }


EXPORTS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "routes": export_routes,
    "states": export_states,
    "policies": export_policies,
    "extra_specs": export_extra_specs,
    "objects": contract_wire.export_objects,
    "remotable": contract_wire.export_remotable,
    "rpc": contract_wire.export_rpc,
    "exceptions": contract_wire.export_exceptions,
    "options": contract_wire.export_options,
    "cli": contract_cli.export_cli,
    "notifications": contract_wire.export_notifications,
    "image_properties": contract_parts.export_image_properties,
    "filters": contract_parts.export_filters,
    "virt": contract_parts.export_virt,
    "periodic_tasks": contract_parts.export_periodic_tasks,
}


# ---------------------------------------------------------------- validate


class Judge:
    """Answers whether a request or response is valid by the declared shapes."""

    def __init__(self) -> None:
        self._routes: dict[tuple[str, str, str | None], list[Route]] = {}
        for route in routes():
            self._routes.setdefault((route.method, route.path, route.action), []).append(route)

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        version = microversions.parse(question["microversion"])
        for route in self._routes.get((question["method"], question["path"], question.get("action")), []):
            if version in route.versions:
                return _verdict(route, question["part"], version, question["data"])
        return {"valid": None, "error": "no such route in this version"}


def _verdict(route: Route, part: str, version: int, data: Any) -> dict[str, Any]:
    compiled = route.compiled.get(part)
    if compiled is None:
        return {"valid": True}
    try:
        compiled.validator(version, relaxed=part != "response").check(data)
    except Invalid as error:
        return {"valid": False, "error": f"{'.'.join(map(str, error.path))}: {error.reason}"}
    return {"valid": True}


def validate() -> None:
    judge = Judge()
    for line in sys.stdin:
        if line.strip():
            print(json.dumps(judge.answer(json.loads(line))), flush=True)


def main(argv: list[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m kilonova.contract", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    export = commands.add_parser("export", help="print the declared facts of a kind")
    export.add_argument("kind", choices=sorted(EXPORTS))
    commands.add_parser("validate", help="judge JSON lines from standard input")
    options = parser.parse_args(argv)
    if options.command == "validate":
        validate()
    else:
        json.dump(EXPORTS[options.kind](), sys.stdout, sort_keys=True, default=str)
    return 0
