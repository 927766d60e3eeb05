"""Soft group policies, staying in the cell, measured metrics, like images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

from oslo_config import cfg

from kilonova.contract import exceptions
from kilonova.scheduler import groups, settings
from kilonova.scheduler.candidates import field
from kilonova.scheduler.request import Request
from kilonova.scheduler.snapshot.host import Host
from kilonova.scheduler.weighers.base import Weigher

ImageProperties = Callable[[str, Collection[str]], Mapping[str, Mapping[str, str]]]
"""(cell uuid, instance uuids) -> {instance uuid: its image properties}"""


class ServerGroupSoftAffinityWeigher(Weigher):
    option = key = "soft_affinity_weight_multiplier"
    policy = groups.SOFT_AFFINITY

    def applies(self, request: Request) -> bool:
        return request.group is not None and request.group.policy == self.policy

    def weigh(self, host: Host, request: Request) -> float:
        if request.group is None or not self.applies(request):
            return 0.0
        return float(len(request.group.on(host)))


class ServerGroupSoftAntiAffinityWeigher(ServerGroupSoftAffinityWeigher):
    option = key = "soft_anti_affinity_weight_multiplier"
    policy = groups.SOFT_ANTI_AFFINITY

    def weigh(self, host: Host, request: Request) -> float:
        return -super().weigh(host, request)


class CrossCellWeigher(Weigher):
    """For a move that may leave its cell: 1 in the preferred cell, -1 elsewhere."""

    option = key = "cross_cell_move_weight_multiplier"

    def applies(self, request: Request) -> bool:
        target: Any = field(request.spec, "requested_destination")
        if target is None or not target.obj_attr_is_set("cell") or target.cell is None:
            return False
        return bool(target.obj_attr_is_set("allow_cross_cell_move") and target.allow_cross_cell_move)

    def weigh(self, host: Host, request: Request) -> float:
        if not self.applies(request):
            return 0.0
        return 1.0 if host.cell_uuid == request.spec.requested_destination.cell.uuid else -1.0


class MetricsWeigher(Weigher):
    group = "metrics"
    option = "weight_multiplier"
    key = "metrics_weight_multiplier"

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__(conf)
        self._settings = settings.pairs(conf.metrics.weight_setting)

    def applies(self, request: Request) -> bool:
        return bool(self._settings)

    def weigh(self, host: Host, request: Request) -> float:
        """Raises ComputeHostMetricNotFound when a required metric is missing."""
        total = 0.0
        for name, ratio in self._settings:
            if name in host.metrics:
                total += float(host.metrics[name]) * ratio
            elif self.conf.metrics.required:
                raise exceptions.ComputeHostMetricNotFound(host=host.host, node=host.nodename, name=name)
            elif ratio * self.multiplier(host) != 0:
                return float(self.conf.metrics.weight_of_unavailable)
        return total


class ImagePropertiesWeigher(Weigher):
    """Servers on the host whose images share properties with this one's. Costs a query per host, so 0 turns it off."""

    option = key = "image_props_weight_multiplier"

    def __init__(self, conf: cfg.ConfigOpts, properties: ImageProperties | None = None) -> None:
        super().__init__(conf)
        self._settings = dict(settings.pairs(conf.filter_scheduler.image_props_weight_setting))
        self.properties = properties

    def applies(self, request: Request) -> bool:
        return self.properties is not None and self.conf.filter_scheduler.image_props_weight_multiplier != 0

    def weigh(self, host: Host, request: Request) -> float:
        if self.properties is None or not self.applies(request):
            return 0.0
        wanted = image_properties(request)
        found: Counter[tuple[str, str]] = Counter()
        for props in self.properties(host.cell_uuid, host.instances).values():
            found.update((name, str(value)) for name, value in props.items())
        shared = {pair: found[pair] for pair in wanted if pair in found}
        if not self._settings:
            return float(sum(shared.values()))
        return sum(self._settings.get(name, 0.0) * count for (name, _), count in shared.items())


def image_properties(request: Request) -> set[tuple[str, str]]:
    image: Any = field(request.spec, "image")
    if image is None or not image.obj_attr_is_set("properties"):
        return set()
    props = image.properties
    return {(name, str(getattr(props, name))) for name in props.fields if props.obj_attr_is_set(name)}
