"""Instance."""

from __future__ import annotations

from typing import Any, ClassVar

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import DictCompat, Persistent, Tracked, WireList, register


@register
class Instance(Persistent, Tracked, DictCompat):
    """A server and what is known of it."""

    VERSION = "2.8"
    fields: Any = {
        "id": t.Integer(),
        "uuid": t.UUID(),
        "access_ip_v4": t.IPV4Address(nullable=True),
        "access_ip_v6": t.IPV6Address(nullable=True),
        "architecture": t.String(nullable=True),
        "auto_disk_config": t.Boolean(default=False),
        "availability_zone": t.String(nullable=True),
        "cell_name": t.String(nullable=True),
        "cleaned": t.Boolean(default=False),
        "compute_id": t.Integer(nullable=True),
        "config_drive": t.String(nullable=True),
        "default_ephemeral_device": t.String(nullable=True),
        "default_swap_device": t.String(nullable=True),
        "device_metadata": t.Object("InstanceDeviceMetadata", nullable=True),
        "disable_terminate": t.Boolean(default=False),
        "display_description": t.String(nullable=True),
        "display_name": t.String(nullable=True),
        "ec2_ids": t.Object("EC2Ids"),
        "ephemeral_gb": t.Integer(nullable=True),
        "ephemeral_key_uuid": t.UUID(nullable=True),
        "fault": t.Object("InstanceFault", nullable=True),
        "flavor": t.Object("Flavor"),
        "hidden": t.Boolean(default=False),
        "host": t.String(nullable=True),
        "hostname": t.String(nullable=True),
        "image_ref": t.String(nullable=True),
        "info_cache": t.Object("InstanceInfoCache", nullable=True),
        "instance_type_id": t.Integer(nullable=True),
        "kernel_id": t.String(nullable=True),
        "key_data": t.String(nullable=True),
        "key_name": t.String(nullable=True),
        "keypairs": t.Object("KeyPairList"),
        "launch_index": t.Integer(nullable=True),
        "launched_at": t.DateTime(nullable=True),
        "launched_on": t.String(nullable=True),
        "locked": t.Boolean(default=False),
        "locked_by": t.String(nullable=True),
        "memory_mb": t.Integer(nullable=True),
        "metadata": t.DictOfStrings(),
        "migration_context": t.Object("MigrationContext", nullable=True),
        "new_flavor": t.Object("Flavor", nullable=True),
        "node": t.String(nullable=True),
        "numa_topology": t.Object("InstanceNUMATopology", nullable=True),
        "old_flavor": t.Object("Flavor", nullable=True),
        "os_type": t.String(nullable=True),
        "pci_devices": t.Object("PciDeviceList", nullable=True),
        "pci_requests": t.Object("InstancePCIRequests", nullable=True),
        "power_state": t.Integer(nullable=True),
        "progress": t.Integer(nullable=True),
        "project_id": t.String(nullable=True),
        "ramdisk_id": t.String(nullable=True),
        "reservation_id": t.String(nullable=True),
        "resources": t.Object("ResourceList", nullable=True),
        "root_device_name": t.String(nullable=True),
        "root_gb": t.Integer(nullable=True),
        "security_groups": t.Object("SecurityGroupList"),
        "services": t.Object("ServiceList"),
        "shutdown_terminate": t.Boolean(default=False),
        "system_metadata": t.DictOfNullableStrings(),
        "tags": t.Object("TagList"),
        "task_state": t.String(nullable=True),
        "terminated_at": t.DateTime(nullable=True),
        "trusted_certs": t.Object("TrustedCerts", nullable=True),
        "user_data": t.String(nullable=True),
        "user_id": t.String(nullable=True),
        "vcpu_model": t.Object("VirtCPUModel", nullable=True),
        "vcpus": t.Integer(nullable=True),
        "vm_mode": t.String(nullable=True),
        "vm_state": t.String(nullable=True),
    }
    REMOVED = {
        "compute_id": "2.7",
        "device_metadata": "2.2",
        "hidden": "2.5",
        "keypairs": "2.1",
        "resources": "2.6",
        "services": "2.0",
        "trusted_certs": "2.3",
    }
    METHODS = {
        "create": "",
        "delete_metadata_key": "key",
        "destroy": "hard_delete=False",
        "drop_migration_context": "",
        "refresh": "use_slave=False",
        "save": "expected_vm_state=None, expected_task_state=None, admin_state_reset=False",
    }
    CLASS_METHODS = {
        "get_by_id": "inst_id, expected_attrs=None",
        "get_by_uuid": "uuid, expected_attrs=None, use_slave=False",
    }
    obj_extra_fields = ["name"]
    TRACKED = ("metadata", "system_metadata")
    NAME_TEMPLATE: ClassVar[str] = "instance-%08x"
    """Default of the option instance_name_template."""

    @property
    def name(self) -> str:
        """The guest's name under the default template; see `name_by`."""
        return self.name_by(self.NAME_TEMPLATE)

    def name_by(self, template: str) -> str:
        """The guest's name by an instance_name_template: made from the id, or from fields as in `%(uuid)s`.

        An instance without an id yet has the name of its UUID.
        """
        if "id" not in self:
            return str(self.uuid)
        try:
            return template % self.id
        except TypeError:
            return template % {field: getattr(self, field) for field in self.fields if field in self}

    def get_flavor(self, namespace: str | None = None) -> Any:
        """The flavor in use; `namespace` "old" or "new" is that of a resize under way."""
        return self.flavor if namespace is None else getattr(self, f"{namespace}_flavor")


@register
class InstanceList(WireList):
    """A list of Instance objects."""

    VERSION = "2.6"
    fields: Any = {
        "objects": t.Objects("Instance"),
    }
    CLASS_METHODS = {
        "_get_active_by_window_joined": (
            "begin, end=None, project_id=None, host=None, expected_attrs=None, use_slave=False, limit=None, marker=None"
        ),
        "get_all": "expected_attrs=None",
        "get_by_filters": (
            "filters, sort_key='created_at', sort_dir='desc', limit=None, marker=None, expected_attrs=None, "
            "use_slave=False, sort_keys=None, sort_dirs=None"
        ),
        "get_by_grantee_security_group_ids": "security_group_ids",
        "get_by_host": "host, expected_attrs=None, use_slave=False",
        "get_by_host_and_node": "host, node, expected_attrs=None",
        "get_by_host_and_not_type": "host, type_id=None, expected_attrs=None",
        "get_by_security_group_id": "security_group_id",
        "get_count_by_vm_state": "project_id, user_id, vm_state",
        "get_counts": "project_id, user_id=None",
        "get_hung_in_rebooting": "reboot_window, expected_attrs=None",
        "get_uuids_by_host": "host",
        "get_uuids_by_host_and_node": "host, node",
        "get_uuids_by_hosts": "hosts",
    }
