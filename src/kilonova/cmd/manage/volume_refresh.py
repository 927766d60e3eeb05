"""Attaching a volume of a stopped server anew.

A second attachment keeps the volume reserved while the host lets go of it under the first; then the second one takes
over. Whatever fails on the way, at the end the record names an attachment that exists, and no other one is left.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

from kilonova.clients.cinder.client import Cinder
from kilonova.cmd.manage import servers
from kilonova.cmd.manage.actions import Refused
from kilonova.cmd.manage.session import Session
from kilonova.contract import exceptions, objects
from kilonova.contract.context import RequestContext, admin
from kilonova.contract.states import VM, Action
from kilonova.db.cell import instances
from kilonova.db.engine import Database, Tx
from kilonova.db.objects import action as actions
from kilonova.db.objects import bdm as mappings
from kilonova.db.objects import instance as instance_objects
from kilonova.db.objects import lock as locking
from kilonova.wire.rpc.clients import ComputeClient


def refresh(
    session: Session, server: servers.Server, mapping: objects.BlockDeviceMapping, connector: Mapping[str, Any]
) -> None:
    """Attach the volume of this mapping anew.

    Raises Refused (5) unless the server is stopped and rests; and what Cinder or the host refuse, after which the
    volume is still the server's.
    """
    uuid, database = str(server.row["uuid"]), server.cell.database
    reason = f"nova-manage attaches volume {mapping.volume_id} anew."
    with _locked(database, uuid, reason), _recorded(database, uuid) as ctxt:
        Renewal(
            cinder=session.clients.cinder,
            compute=ComputeClient(session.bus.at(server.cell.transport_url)),
            database=database,
            ctxt=ctxt,
            instance=database.query(instance_objects.load, uuid),
            mapping=mapping,
            connector=connector,
        ).run()


@dataclasses.dataclass
class Renewal:
    """From one attachment to the next."""

    cinder: Cinder
    compute: ComputeClient
    database: Database
    ctxt: RequestContext
    instance: objects.Instance
    mapping: objects.BlockDeviceMapping
    connector: Mapping[str, Any]

    def run(self) -> None:
        """Raises what the services refuse, after things are in order again."""
        former, volume_id = self.mapping.attachment_id, self.mapping.volume_id
        new = str(self.cinder.attachment_create(self.ctxt, volume_id, self.instance.uuid)["id"])
        try:
            self._let_go(former if former != new else None)
            attachment = self.cinder.attachment_update(self.ctxt, new, self.connector, self.mapping.device_name)
            self._record(new, {"serial": volume_id} | attachment["connection_info"] | self._of_the_volume())
        except BaseException:
            self._settle(former, new)
            raise
        self.cinder.attachment_complete(self.ctxt, new)

    def _let_go(self, former: str | None) -> None:
        """The host disconnects; the former attachment (None: it is the one that is renewed) goes."""
        if connection_of(self.mapping):
            self.compute.remove_volume_connection(
                self.ctxt,
                instance=self.instance,
                volume_id=self.mapping.volume_id,
                host=self.instance.host,
                delete_attachment=former is not None,
            )
        if former is not None:
            # Hosts before version 6.3 of the interface leave it to us.
            self.cinder.attachment_delete(self.ctxt, former)

    def _of_the_volume(self) -> dict[str, Any]:
        """What was recorded with the former connection and is said of the volume, not by Cinder."""
        return {name: value for name, value in connection_of(self.mapping).items() if name == "multiattach"}

    def _record(self, attachment_id: str, connection: Mapping[str, Any] | None) -> None:
        self.mapping.attachment_id = attachment_id
        self.mapping.connection_info = None if connection is None else json.dumps(connection)
        self.database.run(mappings.save, self.ctxt, self.mapping)

    def _settle(self, former: str | None, new: str) -> None:
        """Keep the former attachment where it is still there; else the new one, with nothing connected yet."""
        if former == new:
            return
        if former is not None and self._exists(former):
            self.cinder.attachment_delete(self.ctxt, new)
        else:
            self._record(new, None)

    def _exists(self, attachment_id: str) -> bool:
        try:
            self.cinder.attachment_show(self.ctxt, attachment_id)
        except exceptions.VolumeAttachmentNotFound:
            return False
        return True


def connection_of(mapping: objects.BlockDeviceMapping) -> dict[str, Any]:
    """How the volume is reached, as recorded; empty when it is not connected."""
    return dict(json.loads(mapping.connection_info or "{}") or {})


@contextlib.contextmanager
def _locked(database: Database, uuid: str, reason: str) -> Iterator[None]:
    """Keep the server's user away; a lock that was there before stays. Raises Refused."""
    ours = database.run(_lock, uuid, reason)
    try:
        yield
    finally:
        if ours:
            database.run(_unlock, uuid)


def _lock(tx: Tx, uuid: str, reason: str) -> bool:
    held = instances.instance_hold(tx, uuid, ("vm_state", "task_state", "locked"))
    if held is None:
        raise Refused(4, f"Server {uuid} was deleted meanwhile.")
    if held["vm_state"] != VM.STOPPED or held["task_state"] is not None:
        doing = f" ({held['task_state']})" if held["task_state"] else ""
        raise Refused(5, f"Server {uuid} is {held['vm_state']}{doing}; it has to be stopped.")
    if held["locked"]:
        return False
    locking.lock(tx, uuid, "admin", reason)
    actions.action_start(tx, admin(), uuid, Action.LOCK, want_result=False)
    return True


def _unlock(tx: Tx, uuid: str) -> None:
    locking.unlock(tx, uuid)
    actions.action_start(tx, admin(), uuid, Action.UNLOCK, want_result=False)


@contextlib.contextmanager
def _recorded(database: Database, uuid: str) -> Iterator[RequestContext]:
    """An entry in the server's list of actions, for its user and for operators; the context that it is named for."""
    ctxt = admin()
    name = Action.NOVA_MANAGE_REFRESH_VOLUME_ATTACHMENT
    database.run(actions.action_start, ctxt, uuid, name, want_result=False)
    try:
        yield ctxt
    finally:
        database.run(actions.action_finish, ctxt, uuid, want_result=False)
