"""Servers for tests of hypervisor drivers: real wire objects with only what a build has set."""

from __future__ import annotations

import itertools
import uuid
from typing import Any

from oslo_config import cfg

from kilonova.conf import (
    api_metadata,
    compute_virt,
    default_base,
    default_virt,
    image_cache,
    libvirt,
    neutron_metadata,
    vnc,
)
from kilonova.contract import network_info, objects
from kilonova.virt.driver import GuestSpec, Vif

_numbers = itertools.count(7)
IMAGE_ID = "806e8676-2f0d-4d2d-9cce-3535864d490e"


def configuration(**overrides: Any) -> cfg.ConfigOpts:
    """What a driver and the metadata documents read; overrides as `option=...` or `group__option=...`."""
    conf = cfg.ConfigOpts()
    for module in (
        api_metadata,
        compute_virt,
        default_base,
        default_virt,
        image_cache,
        libvirt,
        neutron_metadata,
        vnc,
    ):
        conf.register_opts(module.OPTIONS, group=module.GROUP)
    conf([], default_config_files=[])
    for name, value in {"my_ip": "127.0.0.1", **overrides}.items():
        group, _, option = name.rpartition("__")
        conf.set_override(option, value, group or None)
    return conf


def flavor(**changes: Any) -> objects.Flavor:
    values = {
        "name": "m1.tiny",
        "flavorid": "1",
        "memory_mb": 192,
        "vcpus": 1,
        "root_gb": 1,
        "ephemeral_gb": 0,
        "swap": 0,
        "extra_specs": {},
    }
    return objects.Flavor(**(values | changes))


def image(disk_format: str = "qcow2", **properties: Any) -> objects.ImageMeta:
    return objects.ImageMeta(
        id=IMAGE_ID,
        name="guest",
        container_format="bare",
        disk_format=disk_format,
        min_disk=0,
        min_ram=0,
        properties=objects.ImageMetaProps(**properties),
    )


def instance(**changes: Any) -> objects.Instance:
    values: dict[str, Any] = {
        "id": next(_numbers),
        "uuid": str(uuid.uuid4()),
        "project_id": "p",
        "user_id": "u",
        "hostname": "vm1",
        "display_name": "vm1",
        "launch_index": 0,
        "availability_zone": "nova",
        "reservation_id": "r-1",
        "image_ref": IMAGE_ID,
        "kernel_id": None,
        "ramdisk_id": None,
        "config_drive": "",
        "launched_at": None,
        "key_name": None,
        "key_data": None,
        "user_data": None,
        "metadata": {},
        "system_metadata": {},
        "os_type": None,
        "root_device_name": None,
        "flavor": flavor(),
    }
    values |= changes
    if values["id"] is None:
        # The database numbers servers itself.
        del values["id"]
    return objects.Instance(**values)


def ovs_port(port_id: str | None = None, **changes: Any) -> Vif:
    port = port_id or str(uuid.uuid4())
    subnet = network_info.subnet("10.0.0.0/24", gateway="10.0.0.1", ips=[network_info.fixed_ip("10.0.0.5")])
    net = network_info.network(str(uuid.uuid4()), label="net", bridge="br-int", subnets=[subnet], mtu=1450)
    details = {"datapath_type": "netdev", "port_filter": True}
    vif = network_info.vif(
        port, "fa:16:3e:00:00:01", net, type="ovs", details=details, ovs_interfaceid=port, active=False
    )
    return {**vif, **changes}


def spec(**changes: Any) -> GuestSpec:
    values: dict[str, Any] = {"instance": instance(), "image_meta": image()}
    return GuestSpec(**(values | changes))
