"""Finds the virtualization driver that the configuration names."""

from __future__ import annotations

import importlib
import pathlib
from collections.abc import Callable

from oslo_config import cfg

from kilonova.contract import exceptions
from kilonova.virt import driver

MODULES = {"fake": "kilonova.virt.fake.driver", "libvirt": "kilonova.virt.libvirt.driver"}
"""First part of `compute_driver` -> module with the class. A module is imported only when it is named."""


def load(conf: cfg.ConfigOpts, host: str, state_path: pathlib.Path, services: driver.Services) -> driver.Driver:
    """Make the driver of `conf.compute_driver` for one host. `state_path` is that host's own directory.

    Raises InvalidConfiguration.
    """
    make: Callable[..., driver.Driver] = named(conf)
    return make(conf, host, state_path, services)


def named(conf: cfg.ConfigOpts) -> type[driver.Driver]:
    """The class of `conf.compute_driver`. Raises InvalidConfiguration for a name that is not ours, saying which are."""
    name = (conf.compute_driver or "").removeprefix("nova.virt.")
    family, _, cls = name.partition(".")
    if family not in MODULES:
        raise exceptions.InvalidConfiguration(
            f"compute_driver is {conf.compute_driver!r}; known are {', '.join(f'{known}.<class>' for known in MODULES)}"
        )
    found = getattr(importlib.import_module(MODULES[family]), cls.rpartition(".")[2], None)
    if not (isinstance(found, type) and issubclass(found, driver.Driver)):
        raise exceptions.InvalidConfiguration(f"compute_driver {conf.compute_driver!r}: {family} has no driver {cls!r}")
    return found
