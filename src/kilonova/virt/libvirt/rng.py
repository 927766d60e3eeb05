"""The guest's source of randomness."""

from __future__ import annotations

import os
from collections.abc import Mapping

from oslo_config import cfg
from oslo_utils import strutils

from kilonova.contract import exceptions
from kilonova.virt.libvirt.config.devices import Rng


def device(conf: cfg.ConfigOpts, extra_specs: Mapping[str, str]) -> Rng | None:
    """Every guest has one unless its flavor forbids it. Raises RngDeviceNotExist."""
    if not strutils.bool_from_string(extra_specs.get("hw_rng:allowed", "True")):
        return None
    path = conf.libvirt.rng_dev_path
    if not os.path.exists(path):
        raise exceptions.RngDeviceNotExist(path=path)
    rate, period = (int(extra_specs.get(f"hw_rng:rate_{name}", 0)) for name in ("bytes", "period"))
    return Rng(path, rate or None, period or None)
