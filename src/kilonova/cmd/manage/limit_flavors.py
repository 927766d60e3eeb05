"""Which resource classes flavors ask for: those offered, and those that servers were made with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kilonova.cmd.manage.session import Session
from kilonova.contract import exceptions, objects
from kilonova.db.api import flavors
from kilonova.db.cell import instances
from kilonova.db.cells import Cell, CellDown
from kilonova.db.objects import instance as instance_objects
from kilonova.db.query import Row
from kilonova.scheduler.candidates import GRANULAR, from_request
from kilonova.scheduler.wishes import Wishes

PAGE = 500
_FIELDS = ("vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap")

Tell = Callable[[str], object]


def offered(session: Session, tell: Tell) -> set[str]:
    """The classes of all flavors in the API database."""
    return _of(map(_flavor, session.cells.api.query(flavors.flavor_list)), tell)


def in_use(session: Session, project_id: str | None, tell: Tell) -> tuple[set[str], list[str]]:
    """The classes of the flavors kept with living servers; the cells that do not answer."""
    answers = session.cells.scatter(lambda cell: _kept(cell, project_id))
    down = [answer.uuid for answer in answers.values() if isinstance(answer, CellDown)]
    texts = {text for answer in answers.values() if not isinstance(answer, CellDown) for text in answer}
    current = (instance_objects.kept_flavors(text)["flavor"] for text in sorted(texts))
    return _of((flavor for flavor in current if flavor is not None), tell), down


def _kept(cell: Cell, project_id: str | None) -> set[str]:
    """Servers made from one flavor mostly keep the same text, so that few remain of many."""
    texts: set[str] = set()
    last = 0
    while page := cell.database.query(instances.instance_flavors, project_id=project_id, limit=PAGE, after=last):
        texts |= {text for _, text in page if text}
        last = page[-1][0]
    return texts


def _flavor(row: Row) -> objects.Flavor:
    values: dict[str, Any] = {name: row[name] or 0 for name in _FIELDS}
    return objects.Flavor(flavorid=row["flavorid"], extra_specs=row["extra_specs"], **values)


def _of(found: Iterable[objects.Flavor], tell: Tell) -> set[str]:
    classes: set[str] = set()
    for flavor in found:
        try:
            classes |= classes_of(flavor)
        except exceptions.NovaException as exc:
            tell(f"Flavor {flavor.flavorid} is passed over: it contradicts itself: {exc}")
    return classes


def classes_of(flavor: objects.Flavor) -> set[str]:
    """The resource classes of a flavor; those of which it wants 0, too. Raises what `from_request` raises."""
    matches = [GRANULAR.match(key) for key in Wishes(flavor, None).specs]
    named = {match[3] for match in matches if match and match[1] == "resources"}
    groups = from_request(objects.RequestSpec(flavor=flavor, is_bfv=False), None).groups.values()
    return named | {name for group in groups for name in group.resources}
