"""`nova-status upgrade check`: what stands in the way of an upgrade or of a start."""

from __future__ import annotations

import dataclasses
import enum
import json
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from oslo_config import cfg

from kilonova.clients.bundle import Clients
from kilonova.clients.cinder.client import ATTACHMENTS
from kilonova.clients.http import ServiceError
from kilonova.clients.placement.client import CANDIDATES
from kilonova.cmd.command import Program
from kilonova.cmd.manage.actions import switch
from kilonova.cmd.manage.machine_types import without_machine_type
from kilonova.contract import context, exceptions
from kilonova.db.api import host_mappings
from kilonova.db.cell import compute_nodes, services
from kilonova.db.cells import Cell, CellDown, Cells

OLDEST_SERVICE_VERSION = 72
"""Of nova-compute in Gazpacho, from which an upgrade to this release goes."""

WIDTH = 60
JSON = switch("--json", help="As JSON.")


class Code(enum.IntEnum):
    """Results by weight; the exit code is that of the heaviest."""

    SUCCESS = 0
    WARNING = 1
    FAILURE = 2


ERROR = 255
"""Exit code when the checks themselves broke down."""


@dataclasses.dataclass(frozen=True)
class Result:
    code: Code
    details: str | None = None


@dataclasses.dataclass(frozen=True)
class Scene:
    """What checks look at."""

    conf: cfg.ConfigOpts
    cells: Cells
    clients: Clients


PASSED = Result(Code.SUCCESS)


def cells_v2(scene: Scene) -> Result:
    """There is cell0, another cell, and every compute node's host is mapped."""
    cells = scene.cells.all()
    if len(cells) < 2 or not any(cell.is_cell0 for cell in cells):
        return Result(Code.FAILURE, "cell0 and one more cell are needed: `nova-manage cell_v2 simple_cell_setup`.")
    if scene.cells.api.query(host_mappings.host_mapping_list):
        return PASSED
    nodes = _everywhere(scene, lambda cell: cell.database.query(compute_nodes.compute_node_list, limit=1))
    if any(nodes.values()):
        return Result(
            Code.FAILURE, "There are compute nodes, but no host is mapped: `nova-manage cell_v2 discover_hosts`."
        )
    return Result(Code.SUCCESS, "There is no compute node yet; run `nova-manage cell_v2 discover_hosts` when there is.")


def placement(scene: Scene) -> Result:
    """Placement answers, with our credentials, in the version we speak."""
    client, ctxt = scene.clients.placement, context.admin()
    try:
        newest = client.newest_version(ctxt)
        if _version(newest) < _version(CANDIDATES):
            return Result(Code.FAILURE, f"Placement speaks up to version {newest}; {CANDIDATES} is needed.")
        # The versions are shown to everybody; this is not.
        client.provider_by_name(ctxt, "nova-status-upgrade-check")
    except ServiceError as exc:
        return Result(Code.FAILURE, f"Placement does not answer as it must: {exc}")
    return PASSED


def cinder(scene: Scene) -> Result:
    """Cinder answers in a version with attachments; not asked when there are no credentials for it."""
    if scene.conf.cinder.auth_type is None:
        return PASSED
    try:
        scene.clients.cinder.attachments(context.admin(), limit=1)
    except exceptions.CinderAPIVersionNotAvailable as exc:
        return Result(Code.FAILURE, f"Cinder does not speak version {ATTACHMENTS}: {exc}")
    except (ServiceError, exceptions.NovaException) as exc:
        return Result(Code.WARNING, f"Cinder does not answer as it must: {exc}")
    return PASSED


def policy_file(scene: Scene) -> Result:
    """The policy file is YAML."""
    from oslo_policy import policy

    policy.Enforcer(scene.conf)
    found = scene.conf.find_file(scene.conf.oslo_policy.policy_file)
    if found and _is_json(Path(found)):
        return Result(Code.FAILURE, f"{found} is JSON; `oslopolicy-convert-json-to-yaml` makes YAML of it.")
    return PASSED


def old_computes(scene: Scene) -> Result:
    """No nova-compute is older than the release before."""
    found = _everywhere(
        scene, lambda cell: cell.database.query(services.service_minimum_version, ["nova-compute"])["nova-compute"]
    )
    versions = [version for version in found.values() if version is not None]
    if versions and min(versions) < OLDEST_SERVICE_VERSION:
        return Result(
            Code.FAILURE,
            f"There is a nova-compute of service version {min(versions)}; the oldest that can be upgraded is "
            f"{OLDEST_SERVICE_VERSION}.",
        )
    return PASSED


def machine_types(scene: Scene) -> Result:
    """Every server has its machine type recorded; matters with libvirt only."""
    # A server in cell0 never had a host that could have recorded one.
    found = _everywhere(scene, lambda cell: [] if cell.is_cell0 else without_machine_type(cell, limit=1))
    if any(found.values()):
        return Result(Code.WARNING, "There are servers without a recorded hw_machine_type. Ignore it without libvirt.")
    return PASSED


def service_user(scene: Scene) -> Result:
    """Calls to other services carry a service token."""
    if scene.conf.service_user.send_service_user_token:
        return PASSED
    return Result(Code.FAILURE, "[service_user] send_service_user_token is needed, with credentials beside it.")


CHECKS: dict[str, Callable[[Scene], Result]] = {
    "Cells v2": cells_v2,
    "Placement API": placement,
    "Cinder API": cinder,
    "Policy File JSON to YAML Migration": policy_file,
    "Older than N-1 computes": old_computes,
    "hw_machine_type unset": machine_types,
    "Service User Token Configuration": service_user,
}


class CellsDownError(Exception):
    """Cells do not answer, so nothing can be said about them."""


def _everywhere(scene: Scene, ask: Callable[[Cell], Any]) -> dict[str, Any]:
    answers = scene.cells.scatter(ask)
    down = [answer for answer in answers.values() if isinstance(answer, CellDown)]
    if down:
        raise CellsDownError("; ".join(f"cell {cell.uuid} does not answer: {cell.reason}" for cell in down))
    return answers


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text())
    except ValueError:
        return False
    return True


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def _judged(run: Callable[[Scene], Result], scene: Scene) -> Result:
    """A check that cannot ask a cell has not passed, and does not keep the others from being shown."""
    try:
        return run(scene)
    except CellsDownError as exc:
        return Result(Code.FAILURE, f"It cannot be told: {exc}")


def check(scene: Scene, *, as_json: bool = False) -> int:
    """Run every check and show the results; the exit code."""
    results = {name: _judged(run, scene) for name, run in CHECKS.items()}
    (_show_json if as_json else _show_table)(results)
    return int(max(result.code for result in results.values()))


def _show_table(results: Mapping[str, Result]) -> None:
    rule = f"+{'-' * (WIDTH + 2)}+"
    print("\n".join([rule, f"| {'Upgrade Check Results':<{WIDTH}} |", rule]))
    for name, result in results.items():
        lines = [f"Check: {name}", f"Result: {result.code.name.capitalize()}"]
        lines += textwrap.wrap(f"Details: {result.details}", WIDTH)
        print("\n".join([*(f"| {line:<{WIDTH}} |" for line in lines), rule]))


def _show_json(results: Mapping[str, Result]) -> None:
    shown = [
        {"check": name, "result": result.code.name.capitalize(), "details": result.details}
        for name, result in results.items()
    ]
    print(json.dumps(shown, indent=2))


def main(argv: list[str] | None = None) -> int:
    """The program."""
    return _PROGRAM.main(argv)


def _run(conf: cfg.ConfigOpts) -> int:
    return check(Scene(conf, Cells(conf), Clients.from_conf(conf)), as_json=conf.category.json)


def _declare(subparsers: Any) -> None:
    upgrade = subparsers.add_parser("upgrade", help="before an upgrade").add_subparsers(dest="action", required=True)
    parser = upgrade.add_parser(
        "check", help="Look for what stands in the way. Exit codes: 0 nothing, 1 warnings, 2 failures."
    )
    parser.add_argument(*JSON.flags, **JSON.settings)


_PROGRAM = Program("nova-status", _declare, lambda: {"upgrade": ["check"]}, _run, lambda _conf: ERROR)
