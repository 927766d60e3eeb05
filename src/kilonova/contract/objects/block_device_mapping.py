"""Block device mappings."""

from __future__ import annotations

from typing import Any

from kilonova.contract.objects import types as t
from kilonova.contract.objects.base import DictCompat, Persistent, WireList, WireObject, register
from kilonova.contract.objects.enums import (
    BlockDeviceDestinationType,
    BlockDeviceEncryptionFormatType,
    BlockDeviceSourceType,
    BlockDeviceType,
)


@register
class BlockDeviceMapping(Persistent, WireObject, DictCompat):
    """One disk of a server: where it comes from, where it goes and how it is attached."""

    VERSION = "1.21"
    fields: Any = {
        "id": t.Integer(),
        "uuid": t.UUID(),
        "attachment_id": t.UUID(nullable=True),
        "boot_index": t.Integer(nullable=True),
        "connection_info": t.SensitiveString(nullable=True),
        "delete_on_termination": t.Boolean(default=False),
        "destination_type": t.Choice(BlockDeviceDestinationType, nullable=True),
        "device_name": t.String(nullable=True),
        "device_type": t.Choice(BlockDeviceType, nullable=True),
        "disk_bus": t.String(nullable=True),
        "encrypted": t.Boolean(default=False),
        "encryption_format": t.Choice(BlockDeviceEncryptionFormatType, nullable=True),
        "encryption_options": t.String(nullable=True),
        "encryption_secret_uuid": t.UUID(nullable=True),
        "guest_format": t.String(nullable=True),
        "image_id": t.String(nullable=True),
        "instance": t.Object("Instance", nullable=True),
        "instance_uuid": t.UUID(),
        "no_device": t.Boolean(default=False),
        "snapshot_id": t.String(nullable=True),
        "source_type": t.Choice(BlockDeviceSourceType, nullable=True),
        "tag": t.String(nullable=True),
        "volume_id": t.String(nullable=True),
        "volume_size": t.Integer(nullable=True),
        "volume_type": t.String(nullable=True),
    }
    REMOVED = {
        "attachment_id": "1.17",
        "encrypted": "1.20",
        "encryption_format": "1.20",
        "encryption_options": "1.20",
        "encryption_secret_uuid": "1.20",
        "tag": "1.16",
        "uuid": "1.18",
        "volume_type": "1.19",
    }
    METHODS = {
        "create": "",
        "destroy": "",
        "save": "",
        "update_or_create": "",
    }
    CLASS_METHODS = {
        "get_by_volume": "volume_id, expected_attrs=None",
        "get_by_volume_and_instance": "volume_id, instance_uuid, expected_attrs=None",
        "get_by_volume_id": "volume_id, instance_uuid=None, expected_attrs=None",
    }


@register
class BlockDeviceMappingList(WireList):
    """A list of BlockDeviceMapping objects."""

    VERSION = "1.18"
    fields: Any = {
        "objects": t.Objects("BlockDeviceMapping"),
    }
    CLASS_METHODS = {
        "get_by_instance_uuid": "instance_uuid, use_slave=False",
        "get_by_instance_uuids": "instance_uuids, use_slave=False",
        "get_by_volume": "volume_id, use_slave=False",
    }
