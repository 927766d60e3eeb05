"""What the API says of hosts: their availability zones and whether their services live."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from kilonova.base import clock
from kilonova.db.api import aggregates
from kilonova.db.engine import Tx

_COMPUTE = "nova-compute"


def zones(tx: Tx, names: Collection[str]) -> dict[str, str]:
    """The availability zone of each host that an aggregate gives one."""
    return aggregates.availability_zones_by_host(tx, names) if names else {}


def is_up(conf: cfg.ConfigOpts, service: Mapping[str, Any]) -> bool:
    """Whether a service was heard of within ``service_down_time`` and is not said to be down."""
    if service["forced_down"]:
        return False
    last: datetime.datetime | None = service["last_seen_up"] or service["updated_at"] or service["created_at"]
    if last is None:
        return False
    return abs((clock.naive_now() - last).total_seconds()) <= conf.service_down_time


def status(conf: cfg.ConfigOpts, services: Sequence[Mapping[str, Any]]) -> str:
    """The ``host_status`` of a server whose host has these services."""
    compute = next((service for service in services if service["binary"] == _COMPUTE), None)
    if compute is None:
        return "UNKNOWN"
    if compute["forced_down"]:
        return "DOWN"
    if compute["disabled"]:
        return "MAINTENANCE"
    return "UP" if is_up(conf, compute) else "UNKNOWN"
