"""Companion of the `ovn` mechanism driver for a Neutron of one API process on SQLite.

Several API processes share OVN's events by a hash ring kept in Neutron's database, and the thread that receives the
events from OVN also writes there that its node lives. SQLite has one writer: a request that, inside its transaction,
waits for OVN's answer would wait for that thread, and that thread for the request. One process is the whole ring, so
nothing of it has to be in a database. The driver binds nothing; named before `ovn`, it is loaded first.
"""

from __future__ import annotations

import datetime
import os
from typing import Any

from neutron.common.ovn import hash_ring_manager
from neutron.db import ovn_hash_ring_db
from neutron_lib.plugins.ml2 import api
from oslo_config import cfg
from oslo_utils import timeutils


def own_node(self: Any, key: Any) -> tuple[str, datetime.datetime]:
    """The node that handles an event, and when it last gave a sign of life."""
    return ovn_hash_ring_db.get_node_uuid(self._group, cfg.CONF.host, os.getpid()), timeutils.utcnow()


def alive(context: Any, node_uuid: str) -> None:
    """A process that is asked lives."""


class OneProcess(api.MechanismDriver):
    def initialize(self) -> None:
        hash_ring_manager.HashRingManager.get_node = own_node
        ovn_hash_ring_db.touch_node = alive
