"""What a domain is called, and which domains are ours."""

from __future__ import annotations

import libvirt
from oslo_config import cfg

from kilonova.contract import objects
from kilonova.virt.libvirt.config.metadata import NAMESPACE


def domain_name(conf: cfg.ConfigOpts, instance: objects.Instance) -> str:
    """`instance_name_template` with the instance's number, or with its fields where the template names them."""
    template = str(conf.instance_name_template)
    try:
        return template % instance.id
    except TypeError:
        fields = {name: getattr(instance, name) for name in instance.fields if name in instance}
    try:
        return template % fields
    except KeyError:
        return str(instance.uuid)


def is_ours(domain: libvirt.virDomain) -> bool:
    """Whether the domain carries our metadata; whoever else uses this libvirt keeps his guests to himself."""
    try:
        domain.metadata(libvirt.VIR_DOMAIN_METADATA_ELEMENT, NAMESPACE)
    except libvirt.libvirtError as failure:
        if failure.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN_METADATA:
            return False
        raise
    return True
