"""Placement in memory: generations, capacity, traits, aggregates, nested providers, candidates."""

from __future__ import annotations

import dataclasses
import itertools
import re
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.fakes.web import FakeService, Refused, body, query, reply, route

from kilonova.clients.http import Reply, Request

CONCURRENT = "placement.concurrent_update"
IN_USE = "placement.inventory.inuse"
CODES_SINCE = 23


@dataclasses.dataclass
class Provider:
    uuid: str
    name: str
    parent: str | None
    root: str
    generation: int = 0
    inventories: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    traits: set[str] = dataclasses.field(default_factory=set)
    aggregates: set[str] = dataclasses.field(default_factory=set)


@dataclasses.dataclass
class Consumer:
    generation: int
    project: str
    user: str
    allocations: dict[str, dict[str, int]]


@dataclasses.dataclass
class Group:
    """One request group of a candidates query."""

    resources: dict[str, int] = dataclasses.field(default_factory=dict)
    required: list[set[str]] = dataclasses.field(default_factory=list)
    forbidden: set[str] = dataclasses.field(default_factory=set)
    member_of: list[set[str]] = dataclasses.field(default_factory=list)
    not_member_of: set[str] = dataclasses.field(default_factory=set)
    in_tree: str | None = None


class FakePlacement(FakeService):
    """`providers` and `consumers` are open for assertions; `host()` adds a compute host."""

    def __init__(self) -> None:
        super().__init__()
        self.providers: dict[str, Provider] = {}
        self.consumers: dict[str, Consumer] = {}
        self.traits: set[str] = set()
        self.newest = "1.39"

    def _dispatch(self, request: Request) -> Reply:
        """Refusals have codes only in microversions that know them."""
        reply = super()._dispatch(request)
        minor = int((request.microversion or "1.0").partition(".")[2])
        if reply.status < 400 or minor >= CODES_SINCE:
            return reply
        return Reply(reply.status, re.sub(rb'"code": "[^"]*", ', b"", reply.content), reply.headers)

    # --- for tests -------------------------------------------------------------------------

    def host(
        self,
        name: str,
        *,
        vcpu: int = 8,
        memory_mb: int = 16384,
        disk_gb: int = 100,
        traits: Iterable[str] = (),
        aggregates: Iterable[str] = (),
        provider: str | None = None,
    ) -> str:
        """A compute host's provider; its uuid."""
        new = provider or str(uuid.uuid4())
        inventories = {
            "VCPU": inventory(vcpu, allocation_ratio=4.0),
            "MEMORY_MB": inventory(memory_mb),
            "DISK_GB": inventory(disk_gb),
        }
        self.providers[new] = Provider(new, name, None, new, 1, inventories, {"OWNER_NOVA", *traits}, set(aggregates))
        self.traits |= set(traits)
        return new

    def held(self, consumer: str) -> dict[str, dict[str, int]]:
        """{provider: {class: amount}} of a consumer."""
        found = self.consumers.get(consumer)
        return found.allocations if found else {}

    def used(self, provider: str, name: str) -> int:
        return sum(each.allocations.get(provider, {}).get(name, 0) for each in self.consumers.values())

    @route("GET", "/")
    def versions(self, request: Request) -> Any:
        links = [{"rel": "self", "href": ""}]
        version = {"id": "v1.0", "min_version": "1.0", "max_version": self.newest, "status": "CURRENT", "links": links}
        return {"versions": [version]}

    # --- providers -------------------------------------------------------------------------

    @route("GET", "/resource_providers")
    def list_providers(self, request: Request) -> Any:
        wanted = dict(query(request))
        found: Iterable[Provider] = self.providers.values()
        if "uuid" in wanted:
            found = [each for each in found if each.uuid == wanted["uuid"]]
        if "name" in wanted:
            found = [each for each in found if each.name == wanted["name"]]
        if "in_tree" in wanted:
            tree = self.providers.get(wanted["in_tree"])
            found = [each for each in found if tree and each.root == tree.root]
        if "member_of" in wanted:
            aggregates = set(wanted["member_of"].removeprefix("in:").split(","))
            found = [each for each in found if each.aggregates & aggregates]
        if "required" in wanted:
            found = [each for each in found if set(wanted["required"].split(",")) <= each.traits]
        return {"resource_providers": [self._show(each) for each in found]}

    @route("POST", "/resource_providers")
    def create_provider(self, request: Request) -> Any:
        new = body(request)
        if new["uuid"] in self.providers or any(each.name == new["name"] for each in self.providers.values()):
            raise problem(409, "placement.duplicate_name", f"Conflicting resource provider {new['name']}")
        parent = new.get("parent_provider_uuid")
        root = self._provider(parent).root if parent else new["uuid"]
        self.providers[new["uuid"]] = Provider(new["uuid"], new["name"], parent, root)
        return self._show(self.providers[new["uuid"]])

    @route("GET", "/resource_providers/{provider}")
    def show_provider(self, request: Request, provider: str) -> Any:
        return self._show(self._provider(provider))

    @route("DELETE", "/resource_providers/{provider}")
    def delete_provider(self, request: Request, provider: str) -> Reply:
        self._provider(provider)
        if any(provider in each.allocations for each in self.consumers.values()):
            raise problem(409, "placement.resource_provider.inuse", "Unable to delete: it has allocations")
        if any(each.parent == provider for each in self.providers.values()):
            raise problem(409, "placement.resource_provider.cannot_delete_parent", "Unable to delete: it has children")
        del self.providers[provider]
        return reply(204)

    @route("GET", "/resource_providers/{provider}/inventories")
    def show_inventories(self, request: Request, provider: str) -> Any:
        found = self._provider(provider)
        return {"inventories": found.inventories, "resource_provider_generation": found.generation}

    @route("PUT", "/resource_providers/{provider}/inventories")
    def set_inventories(self, request: Request, provider: str) -> Any:
        found, new = self._guarded(request, provider)
        wanted = {name: inventory(**each) for name, each in new["inventories"].items()}
        for name in found.inventories:
            if name not in wanted and self.used(provider, name):
                raise problem(409, IN_USE, f"Inventory for '{name}' on resource provider '{provider}' in use.")
        found.inventories = wanted
        return self.show_inventories(request, provider)

    @route("GET", "/resource_providers/{provider}/traits")
    def show_traits(self, request: Request, provider: str) -> Any:
        found = self._provider(provider)
        return {"traits": sorted(found.traits), "resource_provider_generation": found.generation}

    @route("PUT", "/resource_providers/{provider}/traits")
    def set_traits(self, request: Request, provider: str) -> Any:
        found, new = self._guarded(request, provider)
        unknown = {name for name in new["traits"] if name.startswith("CUSTOM_")} - self.traits
        if unknown:
            raise problem(400, "placement.undefined_code", f"No such trait {unknown}")
        found.traits = set(new["traits"])
        return self.show_traits(request, provider)

    @route("GET", "/resource_providers/{provider}/aggregates")
    def show_aggregates(self, request: Request, provider: str) -> Any:
        found = self._provider(provider)
        return {"aggregates": sorted(found.aggregates), "resource_provider_generation": found.generation}

    @route("PUT", "/resource_providers/{provider}/aggregates")
    def set_aggregates(self, request: Request, provider: str) -> Any:
        found, new = self._guarded(request, provider)
        found.aggregates = set(new["aggregates"])
        return self.show_aggregates(request, provider)

    @route("GET", "/resource_providers/{provider}/allocations")
    def provider_allocations(self, request: Request, provider: str) -> Any:
        found = self._provider(provider)
        taken = {
            consumer: {"resources": each.allocations[provider]}
            for consumer, each in self.consumers.items()
            if provider in each.allocations
        }
        return {"allocations": taken, "resource_provider_generation": found.generation}

    def _provider(self, provider: str) -> Provider:
        if provider not in self.providers:
            raise problem(404, "placement.undefined_code", f"No resource provider with uuid {provider} found")
        return self.providers[provider]

    def _guarded(self, request: Request, provider: str) -> tuple[Provider, Any]:
        found, new = self._provider(provider), body(request)
        if new["resource_provider_generation"] != found.generation:
            raise problem(409, CONCURRENT, "resource provider generation conflict")
        found.generation += 1
        return found, new

    def _show(self, provider: Provider) -> dict[str, Any]:
        return {
            "uuid": provider.uuid,
            "name": provider.name,
            "generation": provider.generation,
            "parent_provider_uuid": provider.parent,
            "root_provider_uuid": provider.root,
        }

    # --- traits and classes ----------------------------------------------------------------

    @route("GET", "/traits")
    def list_traits(self, request: Request) -> Any:
        names = dict(query(request)).get("name", "").removeprefix("in:").split(",")
        return {"traits": sorted(self.traits & set(names))}

    @route("PUT", "/traits/{trait}")
    def create_trait(self, request: Request, trait: str) -> Reply:
        self.traits.add(trait)
        return reply(201)

    @route("PUT", "/resource_classes/{name}")
    def create_class(self, request: Request, name: str) -> Reply:
        return reply(201)

    # --- allocations -----------------------------------------------------------------------

    @route("GET", "/allocations/{consumer}")
    def show_allocations(self, request: Request, consumer: str) -> Any:
        found = self.consumers.get(consumer)
        if found is None:
            return {"allocations": {}}
        return {
            "allocations": {
                provider: {"resources": taken, "generation": self.providers[provider].generation}
                for provider, taken in found.allocations.items()
            },
            "consumer_generation": found.generation,
            "project_id": found.project,
            "user_id": found.user,
        }

    @route("PUT", "/allocations/{consumer}")
    def set_allocations(self, request: Request, consumer: str) -> Reply:
        self._replace({consumer: body(request)})
        return reply(204)

    @route("POST", "/allocations")
    def move_allocations(self, request: Request) -> Reply:
        self._replace(body(request))
        return reply(204)

    @route("DELETE", "/allocations/{consumer}")
    def delete_allocations(self, request: Request, consumer: str) -> Reply:
        if self.consumers.pop(consumer, None) is None:
            raise problem(404, "placement.undefined_code", f"No allocations for consumer '{consumer}'")
        return reply(204)

    @route("GET", "/usages")
    def usages(self, request: Request) -> Any:
        wanted = dict(query(request))
        totals: dict[str, int] = defaultdict(int)
        for each in self.consumers.values():
            if each.project == wanted["project_id"] and wanted.get("user_id", each.user) == each.user:
                for taken in each.allocations.values():
                    for name, amount in taken.items():
                        totals[name] += amount
        return {"usages": totals}

    def _replace(self, wanted: Mapping[str, Any]) -> None:
        """All or nothing."""
        for consumer, new in wanted.items():
            now = self.consumers.get(consumer)
            if new["consumer_generation"] != (now.generation if now else None):
                raise problem(409, CONCURRENT, f"consumer generation conflict - expected {now} for {consumer}")
        self._check_room(wanted)
        touched = set()
        for consumer, new in wanted.items():
            allocations = {provider: each["resources"] for provider, each in new["allocations"].items()}
            touched |= set(allocations)
            now = self.consumers.pop(consumer, None)
            if allocations:
                generation = (now.generation if now else 0) + 1
                self.consumers[consumer] = Consumer(generation, new["project_id"], new["user_id"], allocations)
        for provider in touched:
            self.providers[provider].generation += 1

    def _check_room(self, wanted: Mapping[str, Any]) -> None:
        more: dict[tuple[str, str], int] = defaultdict(int)
        for consumer, new in wanted.items():
            held = self.held(consumer)
            for provider, each in new["allocations"].items():
                for name, amount in each["resources"].items():
                    more[provider, name] += amount
            for provider, taken in held.items():
                for name, amount in taken.items():
                    more[provider, name] -= amount
        for (provider, name), amount in more.items():
            if amount > 0 and not self._has_room(provider, name, amount):
                detail = f"Unable to allocate inventory: no room for {amount} {name} on {provider}"
                raise problem(409, "placement.undefined_code", detail)

    def _has_room(self, provider: str, name: str, amount: int) -> bool:
        found = self.providers.get(provider)
        record = found.inventories.get(name) if found else None
        if record is None:
            return False
        capacity = int((record["total"] - record["reserved"]) * record["allocation_ratio"])
        fits_unit = record["min_unit"] <= amount <= record["max_unit"] and amount % record["step_size"] == 0
        return fits_unit and self.used(provider, name) + amount <= capacity

    # --- candidates ------------------------------------------------------------------------

    @route("GET", "/allocation_candidates")
    def candidates(self, request: Request) -> Any:
        groups, more = parse(query(request))
        found = []
        for root in [each for each in self.providers.values() if each.uuid == each.root]:
            if self._root_fits(root, more):
                found.extend(self._of_tree(root, groups, more.get("group_policy")))
        limit = int(more.get("limit", len(found) or 1))
        found = found[:limit]
        used = {provider for each in found for provider in each["allocations"]}
        roots = {self.providers[each].root for each in used}
        return {
            "allocation_requests": found,
            "provider_summaries": {
                each.uuid: self._summary(each) for each in self.providers.values() if each.root in roots
            },
        }

    def _root_fits(self, root: Provider, more: Mapping[str, str]) -> bool:
        for name in filter(None, more.get("root_required", "").split(",")):
            if (name.lstrip("!") in root.traits) == name.startswith("!"):
                return False
        return True

    def _of_tree(self, root: Provider, groups: Mapping[str, Group], policy: str | None) -> Iterator[dict[str, Any]]:
        tree = [each for each in self.providers.values() if each.root == root.uuid]
        choices = []
        for suffix, group in groups.items():
            if suffix:
                fitting = [each for each in tree if self._offers(each, root, group)]
                choices.append([dict.fromkeys(group.resources, each.uuid) for each in fitting])
            else:
                choices.append(self._spread(tree, root, group))
        for picks in itertools.product(*choices):
            mappings = {suffix: sorted(set(pick.values())) for suffix, pick in zip(groups, picks, strict=True)}
            granular = [each for suffix, each in mappings.items() if suffix]
            if policy == "isolate" and len({each[0] for each in granular}) < len(granular):
                continue
            wanted: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
            for group, pick in zip(groups.values(), picks, strict=True):
                for name, provider in pick.items():
                    wanted[provider][name] += group.resources[name]
            if all(self._has_room(p, name, n) for p, each in wanted.items() for name, n in each.items()):
                allocations = {provider: {"resources": each} for provider, each in wanted.items()}
                yield {"allocations": allocations, "mappings": mappings}

    def _spread(self, tree: list[Provider], root: Provider, group: Group) -> list[dict[str, str]]:
        """The unnumbered group: each class from any provider of the tree, traits on any of those."""
        if not self._placed(root, root, group):
            return []
        options = [
            [each.uuid for each in tree if self._has_room(each.uuid, name, amount)]
            for name, amount in group.resources.items()
        ]
        found = []
        for pick in itertools.product(*options):
            traits = set().union(*(self.providers[each].traits for each in {*pick, root.uuid}))
            if traits_fit(traits, group):
                found.append(dict(zip(group.resources, pick, strict=True)))
        return found

    def _offers(self, provider: Provider, root: Provider, group: Group) -> bool:
        room = all(self._has_room(provider.uuid, name, amount) for name, amount in group.resources.items())
        return room and traits_fit(provider.traits, group) and self._placed(provider, root, group)

    def _placed(self, provider: Provider, root: Provider, group: Group) -> bool:
        aggregates = provider.aggregates | root.aggregates
        inside = all(aggregates & each for each in group.member_of) and not aggregates & group.not_member_of
        wanted = self.providers.get(group.in_tree) if group.in_tree else root
        return inside and wanted is not None and wanted.root == root.uuid

    def _summary(self, provider: Provider) -> dict[str, Any]:
        return {
            "resources": {
                name: {
                    "capacity": int((each["total"] - each["reserved"]) * each["allocation_ratio"]),
                    "used": self.used(provider.uuid, name),
                }
                for name, each in provider.inventories.items()
            },
            "traits": sorted(provider.traits),
            "parent_provider_uuid": provider.parent,
            "root_provider_uuid": provider.root,
        }


def inventory(total: int, **more: Any) -> dict[str, Any]:
    """A record with Placement's defaults; a missing max_unit is the total."""
    given = {name: value for name, value in more.items() if value is not None}
    defaults = {"reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1, "allocation_ratio": 1.0}
    return {"total": total, **defaults, **given}


def problem(status: int, code: str, detail: str) -> Refused:
    return Refused(status, {"errors": [{"status": status, "code": code, "detail": detail, "title": "refused"}]})


def traits_fit(traits: set[str], group: Group) -> bool:
    return all(traits & each for each in group.required) and not traits & group.forbidden


def parse(pairs: Iterable[tuple[str, str]]) -> tuple[dict[str, Group], dict[str, str]]:
    """(groups by suffix, the parameters that belong to no group)."""
    groups: dict[str, Group] = defaultdict(Group)
    more: dict[str, str] = {}
    for name, value in pairs:
        match = re.match(r"(resources|required|member_of|in_tree)(.*)$", name)
        if match is None:
            more[name] = value
            continue
        _add(groups[match[2]], match[1], value)
    if not groups:
        raise problem(400, "placement.query.missing_value", "resources missing")
    return {suffix: each for suffix, each in groups.items() if each.resources}, more


def _add(group: Group, kind: str, value: str) -> None:
    if kind == "resources":
        for pair in value.split(","):
            name, _, amount = pair.partition(":")
            group.resources[name] = int(amount)
    elif kind == "in_tree":
        group.in_tree = value
    elif kind == "required":
        _add_required(group, value)
    elif value.startswith("!"):
        group.not_member_of |= set(value[1:].removeprefix("in:").split(","))
    else:
        group.member_of.append(set(value.removeprefix("in:").split(",")))


def _add_required(group: Group, value: str) -> None:
    if value.startswith("in:"):
        group.required.append(set(value[3:].split(",")))
        return
    for name in value.split(","):
        if name.startswith("!"):
            group.forbidden.add(name[1:])
        else:
            group.required.append({name})
