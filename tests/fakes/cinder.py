"""Cinder in memory: volumes, attachments with their states, snapshots."""

from __future__ import annotations

import ast
import uuid
from typing import Any

from tests.fakes.web import FakeService, Refused, body, query, reply, route

from kilonova.clients.http import Reply, Request


class FakeCinder(FakeService):
    """`volumes`, `attachments`, `snapshots` by id, open for tests."""

    def __init__(self) -> None:
        super().__init__()
        self.volumes: dict[str, dict[str, Any]] = {}
        self.attachments: dict[str, dict[str, Any]] = {}
        self.snapshots: dict[str, dict[str, Any]] = {}
        self.paths = "/dev/fake"
        """Below it hosts find what is exported to them."""

    def volume(self, size: int = 1, *, project: str = "project", **more: Any) -> str:
        """An available volume; its id."""
        new = str(uuid.uuid4())
        self.volumes[new] = {
            "id": new,
            "name": "volume",
            "description": None,
            "size": size,
            "status": "available",
            "availability_zone": "nova",
            "created_at": "2026-01-01T00:00:00.000000",
            "multiattach": False,
            "bootable": "false",
            "encrypted": False,
            "metadata": {},
            "snapshot_id": None,
            "volume_type": "lvm",
            "shared_targets": False,
            "service_uuid": None,
            "os-vol-tenant-attr:tenant_id": project,
            **more,
        }
        return new

    @route("GET", "/volumes/{item}")
    def show_volume(self, request: Request, item: str) -> Any:
        return {"volume": self._shown(self._volume(request, item))}

    @route("GET", "/volumes/detail")
    def list_volumes(self, request: Request) -> Any:
        wanted = ast.literal_eval(dict(query(request)).get("metadata", "{}"))
        marked = [each for each in self.volumes.values() if wanted.items() <= each["metadata"].items()]
        found = [self._shown(each) for each in marked if self._visible(request, each)]
        page, link = self.paged(request, found)
        return {"volumes": page, **({"volumes_links": [{"rel": "next", "href": link}]} if link else {})}

    @route("POST", "/volumes")
    def create_volume(self, request: Request) -> Reply:
        wanted = body(request)["volume"]
        new = self.volume(wanted.pop("size"), project=request.ctxt.project_id or "", **wanted)
        return reply(202, {"volume": self._shown(self.volumes[new])})

    @route("DELETE", "/volumes/{item}")
    def delete_volume(self, request: Request, item: str) -> Reply:
        volume = self._volume(request, item)
        if volume["status"] not in ("available", "error"):
            raise refused(400, "Invalid volume: Volume status must be available or error")
        del self.volumes[item]
        return reply(202)

    @route("GET", "/volumes/{item}/encryption")
    def encryption(self, request: Request, item: str) -> Any:
        self._volume(request, item)
        return {"encryption_key_id": None}

    @route("POST", "/volumes/{item}/action")
    def act(self, request: Request, item: str) -> Reply:
        volume = self._volume(request, item)
        action = next(iter(body(request)))
        states = {"os-reserve": "attaching", "os-unreserve": "available", "os-begin_detaching": "detaching"}
        volume["status"] = states.get(action, volume["status"])
        return reply(202)

    # --- attachments -----------------------------------------------------------------------

    @route("POST", "/attachments")
    def create_attachment(self, request: Request) -> Any:
        wanted = body(request)["attachment"]
        volume = self._volume(request, wanted["volume_uuid"])
        usable = ("available", "downloading") if not volume["multiattach"] else ("available", "in-use", "reserved")
        holders = {each["instance"] for each in self.attachments.values() if each["volume_id"] == volume["id"]}
        # A server that has the volume may have it a second time, as for moving to another host.
        again = volume["status"] == "in-use" and holders == {wanted["instance_uuid"]}
        if volume["status"] not in usable and not again:
            raise refused(400, f"Invalid volume: Volume {volume['id']} status must be available or downloading")
        new = str(uuid.uuid4())
        self.attachments[new] = {
            "id": new,
            "volume_id": volume["id"],
            "instance": wanted["instance_uuid"],
            "status": "reserved",
            "attach_mode": "rw",
            "attached_at": None,
            "detached_at": None,
            "connection_info": {},
        }
        volume["status"] = "reserved"
        if wanted.get("connector"):
            self._connect(self.attachments[new], wanted["connector"])
        return {"attachment": self.attachments[new]}

    @route("GET", "/attachments/detail")
    def list_attachments(self, request: Request) -> Any:
        wanted = dict(query(request))
        keys = {"instance_id": "instance", "volume_id": "volume_id", "status": "status"}
        found = [
            each
            for each in self.attachments.values()
            if all(each[keys[name]] == value for name, value in wanted.items() if name in keys)
        ]
        # Cinder says of no more here.
        return {"attachments": self.paged(request, found)[0]}

    @route("GET", "/attachments/{item}")
    def show_attachment(self, request: Request, item: str) -> Any:
        return {"attachment": self._attachment(item)}

    @route("PUT", "/attachments/{item}")
    def update_attachment(self, request: Request, item: str) -> Any:
        attachment = self._attachment(item)
        self._connect(attachment, body(request)["attachment"]["connector"])
        return {"attachment": attachment}

    @route("POST", "/attachments/{item}/action")
    def complete_attachment(self, request: Request, item: str) -> Reply:
        attachment = self._attachment(item)
        attachment["status"] = "attached"
        self.volumes[attachment["volume_id"]]["status"] = "in-use"
        return reply(204)

    @route("DELETE", "/attachments/{item}")
    def delete_attachment(self, request: Request, item: str) -> Any:
        volume = self._attachment(item)["volume_id"]
        del self.attachments[item]
        left = [each for each in self.attachments.values() if each["volume_id"] == volume]
        if volume in self.volumes:
            self.volumes[volume]["status"] = "in-use" if left else "available"
        return {"attachments": left}

    def _connect(self, attachment: dict[str, Any], connector: dict[str, Any]) -> None:
        attachment["status"] = "attaching"
        attachment["device"] = connector.get("mountpoint")
        attachment["connection_info"] = {
            "driver_volume_type": "local",
            "device_path": f"{self.paths}/{attachment['volume_id']}",
            "access_mode": "rw",
            "attachment_id": attachment["id"],
        }

    def _attachment(self, item: str) -> dict[str, Any]:
        if item not in self.attachments:
            raise refused(404, f"Volume attachment could not be found with filter: attachment_id = {item}.")
        return self.attachments[item]

    # --- snapshots -------------------------------------------------------------------------

    @route("GET", "/snapshots/{item}")
    def show_snapshot(self, request: Request, item: str) -> Any:
        if item not in self.snapshots:
            raise refused(404, f"Snapshot {item} could not be found.")
        return {"snapshot": self.snapshots[item]}

    @route("POST", "/snapshots")
    def create_snapshot(self, request: Request) -> Reply:
        wanted = body(request)["snapshot"]
        volume = self._volume(request, wanted["volume_id"])
        new = {"id": str(uuid.uuid4()), "status": "available", "size": volume["size"], **wanted}
        self.snapshots[new["id"]] = new
        return reply(202, {"snapshot": new})

    @route("DELETE", "/snapshots/{item}")
    def delete_snapshot(self, request: Request, item: str) -> Reply:
        if self.snapshots.pop(item, None) is None:
            raise refused(404, f"Snapshot {item} could not be found.")
        return reply(202)

    @route("GET", "/limits")
    def limits(self, request: Request) -> Any:
        return {"limits": {"absolute": {"totalVolumesUsed": len(self.volumes), "maxTotalVolumes": 10}}}

    # --- shared ----------------------------------------------------------------------------

    def _shown(self, volume: dict[str, Any]) -> dict[str, Any]:
        held = [
            {"server_id": each["instance"], "attachment_id": each["id"], "device": each.get("device")}
            for each in self.attachments.values()
            if each["volume_id"] == volume["id"] and each["status"] == "attached"
        ]
        return {**volume, "attachments": held}

    def _volume(self, request: Request, item: str) -> dict[str, Any]:
        volume = self.volumes.get(item)
        if volume is None or not self._visible(request, volume):
            raise refused(404, f"Volume {item} could not be found.")
        return volume

    def _visible(self, request: Request, volume: dict[str, Any]) -> bool:
        return request.ctxt.is_admin or volume["os-vol-tenant-attr:tenant_id"] == request.ctxt.project_id


def refused(status: int, message: str) -> Refused:
    key = {400: "badRequest", 404: "itemNotFound"}[status]
    return Refused(status, {key: {"code": status, "message": message}})
