"""Which filters and weighers the configuration names."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable
from typing import Any, TypeVar

from oslo_config import cfg

from kilonova.contract import exceptions
from kilonova.scheduler.filters import (
    affinity,
    aggregates,
    availability,
    capabilities,
    devices,
    image_properties,
    isolation,
    load,
    query,
)
from kilonova.scheduler.filters.base import Filter
from kilonova.scheduler.weighers import preferences, resources
from kilonova.scheduler.weighers.base import Weigher

T = TypeVar("T")

FILTER_MODULES = (affinity, aggregates, availability, capabilities, devices, image_properties, isolation, load, query)
WEIGHER_MODULES = (resources, preferences)
ALL_FILTERS = "nova.scheduler.filters.all_filters"
ALL_WEIGHERS = "nova.scheduler.weights.all_weighers"


def filter_classes() -> dict[str, type[Filter]]:
    """The filters that come with the scheduler, by class name."""
    return found(FILTER_MODULES, Filter)  # type: ignore[type-abstract]


def weigher_classes() -> dict[str, type[Weigher]]:
    return found(WEIGHER_MODULES, Weigher)  # type: ignore[type-abstract]


def found(modules: Iterable[Any], base: type[T]) -> dict[str, type[T]]:
    classes = {
        cls
        for module in modules
        for _, cls in inspect.getmembers(module, inspect.isclass)
        if issubclass(cls, base) and not inspect.isabstract(cls)
    }
    return {cls.__name__: cls for cls in sorted(classes, key=lambda cls: cls.__name__)}


def filters(conf: cfg.ConfigOpts) -> list[Filter]:
    """The enabled filters, in their order. Raises SchedulerHostFilterNotFound for names that are not available."""
    available: dict[str, type[Filter]] = {}
    for path in conf.filter_scheduler.available_filters:
        available |= filter_classes() if path == ALL_FILTERS else imported(path, Filter, filter_classes())  # type: ignore[type-abstract]
    unknown = [name for name in conf.filter_scheduler.enabled_filters if name not in available]
    if unknown:
        raise exceptions.SchedulerHostFilterNotFound(filter_name=", ".join(unknown))
    return [available[name](conf) for name in conf.filter_scheduler.enabled_filters]


def weighers(conf: cfg.ConfigOpts) -> list[Weigher]:
    """The configured weighers."""
    chosen: dict[str, type[Weigher]] = {}
    for path in conf.filter_scheduler.weight_classes:
        chosen |= weigher_classes() if path == ALL_WEIGHERS else imported(path, Weigher, weigher_classes())  # type: ignore[type-abstract]
    return [cls(conf) for cls in chosen.values()]


def imported(path: str, base: type[T], own: dict[str, type[T]]) -> dict[str, type[T]]:
    """One class by its full name; Nova's names of what comes with the scheduler mean ours.

    Raises SchedulerHostFilterNotFound when it cannot be imported or is of another kind.
    """
    module, _, name = path.rpartition(".")
    if module.startswith("nova.scheduler.") and name in own:
        return {name: own[name]}
    try:
        cls = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as exc:
        raise exceptions.SchedulerHostFilterNotFound(filter_name=path) from exc
    if not (inspect.isclass(cls) and issubclass(cls, base)):
        raise exceptions.SchedulerHostFilterNotFound(filter_name=path)
    return {name: cls}
