"""Processor topologies for three thousand random wishes: the peer's and ours. Needs PEER_PYTHON."""

import json
import os
import pathlib
import random
import subprocess

import pytest
from tests.needs import check

from kilonova.virt.hardware.cpu_topology import best_topology

pytestmark = pytest.mark.interop

PEER = os.environ.get("PEER_PYTHON")
check("peer", module=True)


def wish(chance):
    specs, properties = {}, {}
    for part in ("sockets", "cores", "threads"):
        for prefix, odds in (("", 0.3), ("max_", 0.25)):
            if chance.random() < odds:
                specs[f"hw:cpu_{prefix}{part}"] = str(chance.choice([1, 2, 3, 4, 8]))
            if chance.random() < odds:
                properties[f"hw_cpu_{prefix}{part}"] = chance.choice([1, 2, 3, 4, 8])
    return [chance.choice([1, 2, 3, 4, 6, 8, 12, 16]), specs, properties]


def ours(case):
    try:
        found = best_topology(*case)
    except Exception as failure:
        return type(failure).__name__
    return [found.sockets, found.cores, found.threads]


def test_the_same_is_chosen():
    chance = random.Random(2)
    cases = [wish(chance) for _ in range(3000)]
    done = subprocess.run(
        [PEER, str(pathlib.Path(__file__).with_name("peer_topology.py"))],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    different = [
        (case, a, b) for case, a, b in zip(cases, map(ours, cases), json.loads(done.stdout), strict=True) if a != b
    ]
    assert different == []
