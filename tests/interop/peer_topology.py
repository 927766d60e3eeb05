"""Runs in the peer's Python: the processor topology it chooses for each (vcpus, extra specs, image properties)."""

import json
import sys

from nova import objects

objects.register_all()

from nova.virt import hardware  # noqa: E402


def choose(vcpus, specs, properties):
    flavor = objects.Flavor(vcpus=vcpus, memory_mb=64, extra_specs=specs)
    try:
        found = hardware.get_best_cpu_topology(flavor, objects.ImageMeta.from_dict({"properties": properties}))
    except Exception as failure:
        return type(failure).__name__
    return [found.sockets, found.cores, found.threads]


json.dump([choose(*case) for case in json.load(sys.stdin)], sys.stdout)
