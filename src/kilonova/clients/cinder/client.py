"""Cinder: volumes and the attachments (3.44 and later) by which servers hold them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kilonova.clients import paging, refusals
from kilonova.clients.cinder import translate
from kilonova.clients.http import Http, Params, Reply, ServiceError, passes
from kilonova.clients.patience import outlast
from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext

BASE = "3.0"
ATTACHMENTS = "3.44"
SHARED_TARGETS = "3.48"
MULTIATTACH = "3.27"
REIMAGE = "3.68"

MARK = "kilonova:block_device"
"""Metadata of a volume made for a server: the device's uuid. What was asked for is known by it before its id is."""

CONNECTING = 600.0
"""Seconds for calls in which Cinder exports a volume before it answers."""


class Cinder:
    """Calls to the volume service (API v3) with the user's token, else with the service's credentials."""

    def __init__(self, http: Http, *, cross_az_attach: bool = True) -> None:
        self._http = http
        self.cross_az_attach = cross_az_attach

    # --- volumes ---------------------------------------------------------------------------

    def volume_show(self, ctxt: RequestContext, volume_id: str, microversion: str | None = None) -> dict[str, Any]:
        """A volume (see `translate.volume`). Raises VolumeNotFound, Forbidden, ServiceUnavailable.

        `microversion` 3.48 brings shared_targets and service_uuid; CinderAPIVersionNotAvailable where too old.
        """
        reply = self._call(ctxt, "GET", f"/volumes/{volume_id}", microversion)
        return translate.volume(self._volume(reply, volume_id).json()["volume"])

    def volume_list(self, ctxt: RequestContext, **filters: Any) -> list[dict[str, Any]]:
        return [translate.volume(each) for each in self._pages(ctxt, "/volumes/detail", "volumes", filters)]

    def volumes_behind(
        self, ctxt: RequestContext, marker: str | None, most: int, **filters: Any
    ) -> list[dict[str, Any]]:
        """Up to so many volumes, those behind the marker; fewer at the end of the list."""
        path = "/volumes/detail"
        found = _behind(lambda where: self._pages(ctxt, path, "volumes", where), marker, most, filters)
        return [translate.volume(each) for each in found]

    def volume_create(self, ctxt: RequestContext, size: int, name: str, **more: Any) -> dict[str, Any]:
        """A new volume of `size` GiB.

        `more`: description, snapshot_id, imageRef, volume_type, metadata, availability_zone.
        Raises OverQuota, InvalidInput, NotFound (of what it is made from).
        """
        body = {"size": size, "name": name, **{key: value for key, value in more.items() if value is not None}}
        reply = self._call(ctxt, "POST", "/volumes", None, body={"volume": body})
        return translate.volume(self._expect(reply, "new volume").json()["volume"])

    def volume_delete(self, ctxt: RequestContext, volume_id: str) -> None:
        """Raises VolumeNotFound, InvalidInput while it is in use."""
        self._volume(self._call(ctxt, "DELETE", f"/volumes/{volume_id}", None), volume_id)

    def volume_encryption(self, ctxt: RequestContext, volume_id: str) -> dict[str, Any]:
        """Encryption metadata, empty for a plain volume."""
        reply = self._call(ctxt, "GET", f"/volumes/{volume_id}/encryption", None)
        found = self._volume(reply, volume_id).json()
        return dict(found) if found.get("encryption_key_id") else {}

    def check_attachable(self, volume: Mapping[str, Any]) -> None:
        """Raises InvalidVolume when the volume cannot be attached to any server."""
        if volume["status"] not in ("available", "in-use", "reserved", "downloading"):
            raise exceptions.InvalidVolume(reason=f"volume {volume['id']} is {volume['status']}")
        if volume["attach_status"] == "attached" and not volume["multiattach"]:
            raise exceptions.InvalidVolume(reason=f"volume {volume['id']} is already attached")

    def same_zone(self, volume: Mapping[str, Any], zone: str | None) -> bool:
        """Whether the volume may be attached to a server in that availability zone."""
        return self.cross_az_attach or not zone or volume["availability_zone"] == zone

    def volume_action(self, ctxt: RequestContext, volume_id: str, action: str, body: Any = None) -> None:
        """An action of the volume: os-reserve, os-unreserve, os-begin_detaching, os-roll_detaching, ..."""
        path = f"/volumes/{volume_id}/action"
        self._volume(self._call(ctxt, "POST", path, None, body={action: body}), volume_id)

    # --- attachments -----------------------------------------------------------------------

    def attachment_create(
        self,
        ctxt: RequestContext,
        volume_id: str,
        instance_uuid: str,
        connector: Mapping[str, Any] | None = None,
        mountpoint: str | None = None,
    ) -> dict[str, Any]:
        """Reserve a volume for a server; with a connector also export it to that host.

        A reservation that an earlier try of the same server left (no connector, same volume) is taken
        instead of a second one, so that it may be repeated. Raises VolumeNotFound, InvalidInput, ServiceUnavailable.
        """
        return outlast(
            lambda: self._reserve(ctxt, volume_id, instance_uuid, connector, mountpoint),
            passes,
            f"reservation of volume {volume_id}",
        )

    def _reserve(
        self,
        ctxt: RequestContext,
        volume_id: str,
        instance_uuid: str,
        connector: Mapping[str, Any] | None,
        mountpoint: str | None,
    ) -> dict[str, Any]:
        held = self.attachment_find(ctxt, volume_id, instance_uuid)
        if held is not None and held["status"] in ("reserved", "attaching") and not held["connection_info"]:
            if connector is None:
                return held
            return self.attachment_update(ctxt, held["id"], connector, mountpoint)
        body: dict[str, Any] = {"volume_uuid": volume_id, "instance_uuid": instance_uuid}
        if connector is not None:
            body["connector"] = with_mountpoint(connector, mountpoint)
        reply = self._call(ctxt, "POST", "/attachments", ATTACHMENTS, body={"attachment": body}, timeout=CONNECTING)
        return translate.attachment(self._volume(reply, volume_id).json()["attachment"])

    def attachment_find(self, ctxt: RequestContext, volume_id: str, instance_uuid: str) -> dict[str, Any] | None:
        """The server's attachment of a volume, None when it has none."""
        return next(self._attachments(ctxt, {"volume_id": volume_id, "instance_id": instance_uuid}), None)

    def attachments(self, ctxt: RequestContext, **filters: Any) -> list[dict[str, Any]]:
        """Attachments with details; filters instance_id, volume_id, status."""
        return list(self._attachments(ctxt, filters))

    def attachments_behind(
        self, ctxt: RequestContext, marker: str | None, most: int, **filters: Any
    ) -> list[dict[str, Any]]:
        """Up to so many attachments, those behind the marker; fewer at the end of the list."""
        return _behind(lambda where: self._attachments(ctxt, where), marker, most, filters)

    def _attachments(self, ctxt: RequestContext, filters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        path = "/attachments/detail"
        return map(translate.attachment, self._pages(ctxt, path, "attachments", filters, ATTACHMENTS, linked=False))

    def attachment_show(self, ctxt: RequestContext, attachment_id: str) -> dict[str, Any]:
        """Raises VolumeAttachmentNotFound."""
        reply = self._call(ctxt, "GET", f"/attachments/{attachment_id}", ATTACHMENTS)
        return translate.attachment(self._attachment(reply, attachment_id).json()["attachment"])

    def attachment_update(
        self, ctxt: RequestContext, attachment_id: str, connector: Mapping[str, Any], mountpoint: str | None = None
    ) -> dict[str, Any]:
        """Export the volume to the connector's host; the answer carries `connection_info`."""
        body = {"attachment": {"connector": with_mountpoint(connector, mountpoint)}}
        reply = self._call(ctxt, "PUT", f"/attachments/{attachment_id}", ATTACHMENTS, body=body, timeout=CONNECTING)
        return translate.attachment(self._attachment(reply, attachment_id).json()["attachment"])

    def attachment_complete(self, ctxt: RequestContext, attachment_id: str) -> None:
        """The guest has the volume: it becomes in-use. May be repeated."""
        path, body = f"/attachments/{attachment_id}/action", {"os-complete": None}
        reply = outlast(
            lambda: self._call(ctxt, "POST", path, ATTACHMENTS, body=body), passes, f"attachment {attachment_id}"
        )
        self._attachment(reply, attachment_id)

    def attachment_delete(self, ctxt: RequestContext, attachment_id: str) -> bool:
        """Let go of the volume; False when there is no such attachment (any more)."""
        reply = self._call(ctxt, "DELETE", f"/attachments/{attachment_id}", ATTACHMENTS, timeout=CONNECTING)
        if reply.status == 404:
            return False
        self._expect(reply)
        return True

    # --- snapshots and limits --------------------------------------------------------------

    def snapshot_show(self, ctxt: RequestContext, snapshot_id: str) -> dict[str, Any]:
        """Raises SnapshotNotFound."""
        reply = self._call(ctxt, "GET", f"/snapshots/{snapshot_id}", None)
        return translate.snapshot(self._expect(reply, "snapshot", snapshot_id=snapshot_id).json()["snapshot"])

    def snapshot_create(
        self, ctxt: RequestContext, volume_id: str, name: str, description: str = "", *, force: bool = False
    ) -> dict[str, Any]:
        """A snapshot of a volume, of one in use with `force`. Raises VolumeNotFound, OverQuota."""
        body = {"volume_id": volume_id, "name": name, "description": description, "force": force}
        reply = self._call(ctxt, "POST", "/snapshots", None, body={"snapshot": body})
        return translate.snapshot(self._volume(reply, volume_id).json()["snapshot"])

    def snapshot_delete(self, ctxt: RequestContext, snapshot_id: str) -> None:
        reply = self._call(ctxt, "DELETE", f"/snapshots/{snapshot_id}", None)
        self._expect(reply, "snapshot", snapshot_id=snapshot_id)

    def absolute_limits(self, ctxt: RequestContext) -> dict[str, int]:
        """The project's quotas and what it uses of them."""
        return dict(self._expect(self._call(ctxt, "GET", "/limits", None)).json()["limits"]["absolute"])

    # --- shared ----------------------------------------------------------------------------

    def _pages(
        self,
        ctxt: RequestContext,
        path: str,
        key: str,
        filters: Mapping[str, Any],
        microversion: str | None = None,
        *,
        linked: bool = True,
    ) -> Iterator[dict[str, Any]]:
        def ask(params: Params) -> Any:
            return self._expect(self._call(ctxt, "GET", path, microversion, params=params)).json()

        if "limit" in filters:
            return iter(ask(filters)[key])
        return paging.every("cinder", ask, filters, key, linked=linked)

    def _call(self, ctxt: RequestContext, method: str, path: str, microversion: str | None, **more: Any) -> Reply:
        return self._http.call(ctxt, method, path, microversion=microversion or BASE, **more)

    def _volume(self, reply: Reply, volume_id: str) -> Reply:
        return self._expect(reply, "volume", volume_id=volume_id)

    def _attachment(self, reply: Reply, attachment_id: str) -> Reply:
        return self._expect(reply, "attachment", attachment_id=attachment_id)

    def _expect(self, reply: Reply, about: str = "", **ids: str) -> Reply:
        if not reply.ok:
            raise refusals.of(self._http.error(reply), about, **ids)
        return reply


def _behind(
    listed: Callable[[Mapping[str, Any]], Iterator[dict[str, Any]]],
    marker: str | None,
    most: int,
    filters: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """A part of a list; from the beginning when what the marker names is gone."""
    if marker is not None:
        try:
            return list(itertools.islice(listed({**filters, "marker": marker}), most))
        except (ServiceError, exceptions.InvalidInput) as exc:
            if isinstance(exc, ServiceError) and exc.status != 404:
                raise
    return list(itertools.islice(listed(filters), most))


def with_mountpoint(connector: Mapping[str, Any], mountpoint: str | None) -> dict[str, Any]:
    """Cinder shows the device name of an attachment as its connector gives it."""
    return {**connector, **({"mountpoint": mountpoint} if mountpoint else {})}
