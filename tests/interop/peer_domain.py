"""Runs in the peer's Python: the domain its libvirt driver makes of each case on standard input (JSON)."""

import json
import sys
import traceback

case_file = json.load(sys.stdin)

import nova.conf  # noqa: E402

CONF = nova.conf.CONF
CONF([], project="nova", default_config_files=[])
nova.conf.neutron.register_dynamic_opts(CONF)
nova.conf.devices.register_dynamic_opts(CONF)


def override(options):
    for group, name, value in options:
        CONF.set_override(name, value, group or None)


override(case_file["options"])
import os_vif  # noqa: E402
from nova import context, objects  # noqa: E402

objects.register_all()

from nova.network import model  # noqa: E402
from nova.virt import virtapi  # noqa: E402
from nova.virt.libvirt import blockinfo, driver  # noqa: E402

os_vif.initialize()


def domain(case):
    # Some options are read when the driver is made.
    drv = driver.LibvirtDriver(virtapi.VirtAPI())
    instance = objects.Instance.obj_from_primitive(case["instance"], context=context.get_admin_context())
    image = objects.ImageMeta.obj_from_primitive(case["image"])
    for name, field in instance.fields.items():
        if not instance.obj_attr_is_set(name) and getattr(field, "nullable", False):
            setattr(instance, name, None)
    instance.resources = None
    instance.pci_devices = objects.PciDeviceList(objects=[])
    kept = {name: getattr(image, name) for name in ("min_disk", "min_ram", "disk_format", "container_format")}
    kept |= {name: getattr(image.properties, name) for name in image.properties.fields if name in image.properties}
    instance.system_metadata = {f"image_{name}": str(value) for name, value in kept.items()}
    block = case["block_devices"] | {"image": []}
    config = drv._get_guest_config(
        instance,
        model.NetworkInfo.hydrate(case["network_info"]),
        image,
        blockinfo.get_disk_info(CONF.libvirt.virt_type, instance, image, block),
        block_device_info=block,
        context=context.get_admin_context(),
    )
    return config.to_xml()


made = []
for case in case_file["cases"]:
    override(case["options"])
    try:
        made.append(domain(case))
    except Exception:
        made.append(traceback.format_exc())
    for group, name, _ in case["options"]:
        CONF.clear_override(name, group or None)
    override(case_file["options"])
json.dump(made, sys.stdout)
