"""Memory statistics of the guest."""

from __future__ import annotations

from oslo_config import cfg

from kilonova.virt.libvirt.config.devices import MemoryBalloon


def device(conf: cfg.ConfigOpts) -> MemoryBalloon:
    period = conf.libvirt.mem_stats_period_seconds
    return MemoryBalloon(period if period > 0 else None)
