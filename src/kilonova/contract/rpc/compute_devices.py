"""Calls to compute hosts about a server's volumes, interfaces, shares and consoles."""

from __future__ import annotations

from kilonova.contract.rpc.table import Method, Sent

METHODS = (
    Method(
        "add_fixed_ip_to_instance",
        "instance, network_id",
        host="instance.host",
        sent=(
            Sent("6.0", "instance, network_id"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "allow_share",
        "instance, share_mapping",
        host="instance.host",
        sent=(
            Sent("6.4", "instance, share_mapping"),
            Sent(up_to="6.3", refuses="UnsupportedRPCVersion"),
        ),
    ),
    Method(
        "attach_interface",
        "instance, network_id, port_id, requested_ip, tag=None",
        host="instance.host",
        call=True,
        sent=(
            Sent("6.0", "instance, network_id, port_id, requested_ip, tag"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "attach_volume",
        "instance, bdm",
        host="instance.host",
        sent=(
            Sent("6.0", "instance, bdm"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "deny_share",
        "instance, share_mapping",
        host="instance.host",
        sent=(
            Sent("6.4", "instance, share_mapping"),
            Sent(up_to="6.3", refuses="UnsupportedRPCVersion"),
        ),
    ),
    Method(
        "detach_interface",
        "instance, port_id",
        host="instance.host",
        sent=(
            Sent("6.0", "instance, port_id"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "detach_volume",
        "instance, volume_id, attachment_id=None",
        host="instance.host",
        sent=(
            Sent("6.0", "instance, volume_id, attachment_id"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "external_instance_event",
        "instances, events, host=None",
        host="host",
        sent=(
            Sent("6.0", "instances, events", topic="compute-alt"),
            Sent("6.0", up_to="6.4"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "get_console_output",
        "instance, tail_length",
        host="instance.host",
        call=True,
        sent=(
            Sent("6.0", "instance, tail_length"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "get_diagnostics",
        "instance",
        host="instance.host",
        call=True,
        sent=(
            Sent("6.0", "instance"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "get_instance_diagnostics",
        "instance",
        host="instance.host",
        call=True,
        sent=(
            Sent("6.0", "instance"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "get_mks_console",
        "instance, console_type",
        host="instance.host",
        call=True,
        sent=(
            Sent("6.0", "instance, console_type"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "get_serial_console",
        "instance, console_type",
        host="instance.host",
        call=True,
        sent=(
            Sent("6.0", "instance, console_type"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "get_spice_console",
        "instance, console_type",
        host="instance.host",
        call=True,
        sent=(
            Sent("6.0", "instance, console_type"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "get_vnc_console",
        "instance, console_type",
        host="instance.host",
        call=True,
        sent=(
            Sent("6.0", "instance, console_type"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "inject_network_info",
        "instance",
        host="instance.host",
        sent=(
            Sent("6.0", "instance"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "remove_fixed_ip_from_instance",
        "instance, address",
        host="instance.host",
        sent=(
            Sent("6.0", "instance, address"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "remove_volume_connection",
        "instance, volume_id, host, delete_attachment=False",
        host="host",
        call=True,
        sent=(
            Sent("6.3", "instance, volume_id, delete_attachment", topic="compute-alt"),
            Sent("6.3", up_to="6.4"),
            Sent("6.0", "instance, volume_id", up_to="6.2"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "reserve_block_device_name",
        "instance, device, volume_id, disk_bus, device_type, tag, multiattach",
        host="instance.host",
        call=True,
        long=True,
        sent=(
            Sent("6.0", "instance, device, volume_id, disk_bus, device_type, tag, multiattach"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "swap_volume",
        "instance, old_volume_id, new_volume_id, new_attachment_id",
        host="instance.host",
        sent=(
            Sent("6.0", "instance, old_volume_id, new_volume_id, new_attachment_id"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "trigger_crash_dump",
        "instance",
        host="instance.host",
        sent=(
            Sent("6.0", "instance"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "validate_console_port",
        "instance, port, console_type",
        host="instance.host",
        call=True,
        sent=(
            Sent("6.0", "instance, port, console_type", topic="compute-alt"),
            Sent("6.0", up_to="6.4"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "volume_snapshot_create",
        "instance, volume_id, create_info",
        host="instance.host",
        sent=(
            Sent("6.0", "instance, volume_id, create_info"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "volume_snapshot_delete",
        "instance, volume_id, snapshot_id, delete_info",
        host="instance.host",
        sent=(
            Sent("6.0", "instance, volume_id, snapshot_id, delete_info"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
)
