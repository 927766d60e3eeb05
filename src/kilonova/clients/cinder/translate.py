"""Volumes, snapshots and attachments in the form the rest of the code reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TRUE = frozenset({"true", "1", "yes", "on", "t", "y"})


def volume(body: Mapping[str, Any]) -> dict[str, Any]:
    """A volume; `size` in GiB, `attachments` {server: {attachment_id, mountpoint}}."""
    attachments = {
        each["server_id"]: {"attachment_id": each.get("attachment_id"), "mountpoint": each.get("device")}
        for each in body.get("attachments") or ()
    }
    out = {
        "id": body["id"],
        "status": body["status"],
        "size": body["size"],
        "availability_zone": body.get("availability_zone"),
        "created_at": body.get("created_at"),
        "attach_time": "",
        "mountpoint": "",
        "multiattach": bool(body.get("multiattach", False)),
        "attach_status": "attached" if attachments else "detached",
        "attachments": attachments,
        "display_name": body.get("name"),
        "display_description": body.get("description"),
        "volume_type_id": body.get("volume_type"),
        "snapshot_id": body.get("snapshot_id"),
        "source_volid": body.get("source_volid"),
        "bootable": str(body.get("bootable", "")).lower() in TRUE,
        "encrypted": bool(body.get("encrypted", False)),
        "volume_metadata": dict(body.get("metadata") or {}),
        "os-vol-tenant-attr:tenant_id": body.get("os-vol-tenant-attr:tenant_id"),
    }
    optional = ("volume_image_metadata", "shared_targets", "service_uuid", "migration_status")
    return out | {name: body[name] for name in optional if name in body}


def snapshot(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": body["id"],
        "status": body["status"],
        "progress": body.get("os-extended-snapshot-attributes:progress"),
        "size": body["size"],
        "created_at": body.get("created_at"),
        "display_name": body.get("name"),
        "display_description": body.get("description"),
        "volume_id": body["volume_id"],
        "project_id": body.get("os-extended-snapshot-attributes:project_id"),
        "volume_size": body["size"],
    }


def attachment(body: Mapping[str, Any]) -> dict[str, Any]:
    """An attachment; `connection_info` has the shape that volume connectors take (driver_volume_type, data).

    Connectors find the attachment's own values there too; they stay where readers of attachments look for them.
    """
    out = dict(body)
    data = dict(out.pop("connection_info", None) or {})
    info: dict[str, Any] = {}
    if data:
        data.pop("attachment_id", None)
        info = {"driver_volume_type": data.pop("driver_volume_type", None), "data": data}
        for name in ("status", "instance", "attached_at", "detached_at"):
            info[name] = out.get(name)
        info |= {name: value for name, value in out.items() if name not in ("id", "attach_mode")}
    out["connection_info"] = info
    return out
