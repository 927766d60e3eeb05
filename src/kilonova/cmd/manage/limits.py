"""`nova-manage limits migrate_to_unified_limits`: quotas of the database become limits in Keystone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from kilonova.clients.bundle import operators_keystone
from kilonova.clients.http import ServiceError
from kilonova.clients.keystone.client import Keystone
from kilonova.cmd.manage import limit_flavors
from kilonova.cmd.manage.actions import Action, Refused, argument, switch
from kilonova.cmd.manage.session import Session
from kilonova.contract import context
from kilonova.db.api import quotas
from kilonova.db.cells import LOST, NoApiDatabaseError

DONE, FAILED, NO_DATABASE, MISSING = 0, 1, 2, 3

UNIFIED = {
    "instances": ("servers",),
    "cores": ("class:VCPU", "class:PCPU"),
    "ram": ("class:MEMORY_MB",),
    "metadata_items": ("server_metadata_items",),
    "injected_files": ("server_injected_files",),
    "injected_file_content_bytes": ("server_injected_file_content_bytes",),
    "injected_file_path_bytes": ("server_injected_file_path_bytes",),
    "key_pairs": ("server_key_pairs",),
    "server_groups": ("server_groups",),
    "server_group_members": ("server_group_members",),
}
"""The limits in Keystone for each quota. Dedicated CPUs counted as cores; there they have a limit of their own."""

ALWAYS_ASKED = frozenset({"class:DISK_GB"})
"""What every flavor asks for and no quota counted."""


@dataclasses.dataclass(frozen=True)
class _Voice:
    """`tell` is for details, `warn` for what an operator must see."""

    tell: Callable[[str], object]
    warn: Callable[[str], object]


@dataclasses.dataclass(frozen=True)
class _Run:
    session: Session
    keystone: Keystone
    service: str
    region: str | None
    project: str | None
    dry_run: bool
    voice: _Voice

    def defaults(self) -> Mapping[str, int]:
        from kilonova.api import quota

        return quota.defaults(self.session.conf, self.session.cells.api.query(quotas.quota_class_get))

    def register(self) -> bool:
        """Register what is not; whether all went well."""
        ctxt = context.admin()
        present = self.registered()
        fine = True
        for name, limit in _unified(self.defaults()):
            create = partial(self.keystone.registered_limit_create, ctxt, self.service, self.region, name, limit)
            fine &= self._settle("default limit", name, limit, present, create)
        return fine

    def registered(self) -> dict[str, int]:
        found = self.keystone.registered_limits(context.admin(), self.service, self.region)
        return {each["resource_name"]: each["default_limit"] for each in found}

    def limit_project(self, project: str) -> bool:
        """Give the project in Keystone the limits it has in the database; whether all went well."""
        ctxt = context.admin()
        own = self.session.cells.api.query(quotas.quota_get, project)
        of_users = self.session.cells.api.query(quotas.quota_list_by_user, project)
        found = self.keystone.project_limits(ctxt, self.service, self.region, project)
        present = {each["resource_name"]: each["resource_limit"] for each in found}
        fine = True
        for name, limit in _unified(own):
            create = partial(self.keystone.project_limit_create, ctxt, self.service, self.region, project, name, limit)
            fine &= self._settle("project limit", name, limit, present, create)
        if of_users:
            self.voice.warn(f"Limits of single users stay behind, Keystone has none: {', '.join(sorted(of_users))}.")
        return fine

    def _settle(self, what: str, name: str, limit: int, present: Mapping[str, int], create: Callable[[], bool]) -> bool:
        if name in present:
            self.voice.tell(f"There is a {what} {name} = {present[name]} already.")
            return True
        where = f" in region {self.region}" if self.region else ""
        if self.dry_run:
            self.voice.tell(f"[dry-run] {what} {name} = {limit}{where}")
            return True
        try:
            created = create()
        except ServiceError as exc:
            self.session.complain(f"Keystone does not take the {what} {name} = {limit}: {exc}")
            return False
        self.voice.tell(f"{what} {name} = {limit}{where}" if created else f"There is a {what} {name} already.")
        return True

    def scan(self, *, in_use: bool, all_rows: bool, json: bool, quiet: bool) -> int:
        """Show which resource classes have no registered limit: servers that want them would be refused."""
        classes = limit_flavors.offered(self.session, self.voice.warn)
        down: list[str] = []
        if in_use:
            used, down = limit_flavors.in_use(self.session, self.project, self.voice.warn)
            classes |= used
        registered = self.registered()
        names = sorted({f"class:{name}" for name in classes} | ALWAYS_ASKED)
        missing = [name for name in names if name not in registered]
        rows = [(name, registered.get(name, "missing")) for name in names if all_rows or name in missing]
        if json or (rows and not quiet):
            self.session.table(("Resource", "Registered Limit"), rows, as_json=json)
        if down:
            self.voice.warn(f"Servers of cells that do not answer were not looked at: {', '.join(down)}.")
        if missing:
            self.voice.warn("Register limits for what is missing before the limits of Keystone are made to count.")
            return MISSING
        self.voice.warn("Every resource class in use has a registered limit.")
        return DONE


def migrate_to_unified_limits(
    session: Session,
    project_id: str | None,
    region_id: str | None,
    verbose: bool,
    dry_run: bool,
    quiet: bool,
    no_embedded_flavor_scan: bool,
    json: bool,
) -> int:
    if verbose and quiet:
        raise Refused(FAILED, "--verbose and --quiet exclude one another.")
    try:
        run = _begin(session, project_id, region_id, dry_run, _voice(session, verbose=verbose, quiet=quiet, json=json))
        fine = run.register()
        if project_id:
            fine &= run.limit_project(project_id)
        if not fine:
            return FAILED
        return run.scan(in_use=not no_embedded_flavor_scan, all_rows=verbose, json=json, quiet=quiet)
    except (NoApiDatabaseError, *LOST) as exc:
        raise Refused(NO_DATABASE, f"The API database cannot be reached: {exc}") from exc
    except ServiceError as exc:
        raise Refused(FAILED, f"Keystone does not answer as it must: {exc}") from exc


def _voice(session: Session, *, verbose: bool, quiet: bool, json: bool) -> _Voice:
    """With JSON on the output, words go elsewhere."""
    speak = session.complain if json else session.say

    def silent(_text: str) -> None:
        pass

    return _Voice(speak if verbose else silent, silent if quiet else speak)


def _begin(session: Session, project: str | None, region: str | None, dry_run: bool, voice: _Voice) -> _Run:
    keystone = operators_keystone(session.conf)
    session.cells.all()
    service = keystone.service_id(context.admin(), "nova")
    if service is None:
        raise Refused(FAILED, "Keystone knows no service named nova.")
    return _Run(session, keystone, service, region, project, dry_run, voice)


def _unified(limits: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """(name in Keystone, limit); quotas of what is Neutron's by now are left out."""
    for quota, names in UNIFIED.items():
        if quota in limits:
            yield from ((name, limits[quota]) for name in names)


ACTIONS = (
    Action(
        "limits",
        "migrate_to_unified_limits",
        "Register in Keystone the default limits of the database and the configuration, and with --project-id give a "
        "project its own.\nLimits that Keystone has already stay. Then flavors are searched for resource classes "
        "without a registered limit.",
        migrate_to_unified_limits,
        (
            argument("--project-id", metavar="<project-id>", help="Copy this project's own limits, too."),
            argument("--region-id", metavar="<region-id>", help="Region for which limits are registered."),
            switch("--verbose", help="Tell of each limit, and show every resource class that was found."),
            switch("--dry-run", help="Write nothing; with --verbose show what would be written."),
            switch("--quiet", help="Print nothing; the exit code tells."),
            switch("--no-embedded-flavor-scan", help="Do not look at the flavors kept with servers."),
            switch("--json", help="Show the resource classes as JSON."),
        ),
        {
            0: "done; every resource class has a registered limit",
            1: "something failed",
            2: "the database cannot be reached",
            3: "done, but resource classes lack a registered limit",
        },
        unforeseen=FAILED,
    ),
)
