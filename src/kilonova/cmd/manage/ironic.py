"""`nova-manage db ironic_compute_node_move`: a bare metal node and its server change their nova-compute."""

from __future__ import annotations

from kilonova.cmd.manage.actions import Action, Refused, argument
from kilonova.cmd.manage.session import Session
from kilonova.db.cell import compute_nodes, instances, services
from kilonova.db.engine import Database, Tx

_FAILED = 255


def ironic_compute_node_move(
    session: Session, compute_node_uuid: str | None, destination_service_host: str | None
) -> int:
    if not compute_node_uuid or not destination_service_host:
        raise Refused(_FAILED, "Give both --ironic-node-uuid and --destination-host.")
    database = _holder(session, compute_node_uuid)
    moved = database.run(_move, compute_node_uuid, destination_service_host)
    session.say(f"Node {compute_node_uuid} is now {destination_service_host}'s, with {len(moved)} servers.")
    return 0


def _holder(session: Session, node_uuid: str) -> Database:
    """The database of the cell that has the node."""
    if not session.cells.has_api:
        return session.cells.own
    for cell in session.cells.all(include_cell0=False):
        if cell.database.query(compute_nodes.compute_node_get_by_uuid, node_uuid):
            return cell.database
    raise Refused(_FAILED, f"No cell has a node {node_uuid}.")


def _move(tx: Tx, node_uuid: str, host: str) -> list[str]:
    """Give the node to a host; the uuids of the servers that go with it. Raises Refused."""
    service = services.service_get_by_host(tx, host, "nova-compute")
    if service is None:
        raise Refused(_FAILED, f"The node's cell has no nova-compute on host {host}.")
    if service["forced_down"]:
        raise Refused(_FAILED, f"nova-compute on {host} is forced down; it could not take care of the node.")
    node = compute_nodes.compute_node_get_by_uuid(tx, node_uuid)
    if node is None:
        raise Refused(_FAILED, f"There is no node {node_uuid}.")
    if node["host"] == host:
        return []
    before = services.service_get_by_host(tx, node["host"], "nova-compute")
    if before is not None and not before["forced_down"]:
        raise Refused(
            _FAILED, f"nova-compute on {node['host']} is not forced down; it would go on to manage the node as well."
        )
    living = {"host": node["host"], "node": node["hypervisor_hostname"], "deleted": False}
    uuids = instances.instance_uuids(tx, living)
    if len(uuids) > 1:
        raise Refused(
            _FAILED, f"Node {node_uuid} has {len(uuids)} servers; delete those that Ironic does not have on it."
        )
    compute_nodes.compute_node_update(tx, node["id"], {"host": host, "service_id": service["id"]})
    for uuid in uuids:
        instances.instance_update(tx, uuid, {"host": host})
    return uuids


ACTIONS = (
    Action(
        "db",
        "ironic_compute_node_move",
        "Move an Ironic node, and the server on it, from a nova-compute that is forced down to another one.",
        ironic_compute_node_move,
        (
            argument("--ironic-node-uuid", dest="compute_node_uuid", metavar="<uuid>", help="UUID of the node."),
            argument(
                "--destination-host",
                dest="destination_service_host",
                metavar="<host>",
                help="Host name of the nova-compute that takes it.",
            ),
        ),
    ),
)
