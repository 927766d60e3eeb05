"""What the metadata of a host's aggregates allow."""

from __future__ import annotations

from kilonova.scheduler import operators
from kilonova.scheduler.filters.base import Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.snapshot.host import Host

SCOPE = "aggregate_instance_extra_specs"


class AggregateImagePropertiesIsolation(Filter):
    """A metadata key that is an image property too must list the image's value."""

    once = True
    on_rebuild = True

    def objection(self, host: Host, request: Request) -> str | None:
        options = self.conf.filter_scheduler
        namespace = options.aggregate_image_properties_isolation_namespace
        prefix = namespace + options.aggregate_image_properties_isolation_separator if namespace else ""
        for key, allowed in host.metadata().items():
            found = request.wishes.prop(key) if key.startswith(prefix) else None
            if found and str(found) not in allowed:
                return f"its aggregates allow {key} {', '.join(sorted(allowed))}, not {found}"
        return None


class AggregateInstanceExtraSpecsFilter(Filter):
    """Every extra spec (unscoped, or in its own scope) must match the metadata."""

    once = True

    def objection(self, host: Host, request: Request) -> str | None:
        specs = request.wishes.specs
        if not specs:
            return None
        metadata = host.metadata()
        for key, wanted in specs.items():
            scope, colon, rest = key.partition(":")
            if colon and scope != SCOPE:
                continue
            name = rest.split(":", 1)[0] if colon else scope
            values = metadata.get(name)
            if not values:
                return f"none of its aggregates has {name}"
            if not any(operators.match(value, wanted) for value in values):
                return f"{name} is {', '.join(sorted(values))} in its aggregates, not {wanted}"
        return None


class AggregateMultiTenancyIsolation(Filter):
    """Hosts of aggregates that name projects are for those projects."""

    once = True

    def objection(self, host: Host, request: Request) -> str | None:
        named = {
            project
            for name, values in host.metadata().items()
            if name.startswith("filter_tenant_id")
            for project in values
        }
        return "it is reserved for other projects" if named and request.spec.project_id not in named else None


class AggregateTypeAffinityFilter(Filter):
    """Hosts of aggregates that name flavors (instance_type) are for those flavors."""

    once = True
    keys = ("instance_type",)

    def objection(self, host: Host, request: Request) -> str | None:
        named = {name.strip() for value in host.metadata_values(self.keys[0]) for name in value.split(",")}
        return "it is reserved for other flavors" if named and request.spec.flavor.name not in named else None
