"""Calls to compute hosts about a guest as a whole, and about the host itself."""

from __future__ import annotations

from kilonova.contract.rpc.table import Method, Sent

METHODS = (
    Method(
        "backup_instance",
        "instance, image_id, backup_type, rotation",
        host="instance.host",
        sent=(
            Sent("6.0", "instance, image_id, backup_type, rotation"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "build_and_run_instance",
        (
            "instance, host, image, request_spec, filter_properties, admin_password=None, "
            "injected_files=None, requested_networks=None, security_groups=None, "
            "block_device_mapping=None, node=None, limits=None, host_list=None, accel_uuids=None"
        ),
        host="host",
        sent=(
            Sent(
                "6.0",
                (
                    "instance, image, request_spec, filter_properties, admin_password, injected_files, "
                    "requested_networks, security_groups, block_device_mapping, node, limits, host_list, "
                    "accel_uuids"
                ),
            ),
            Sent("5.11", up_to="5.13"),
            Sent(
                "5.0",
                (
                    "instance, image, request_spec, filter_properties, admin_password, injected_files, "
                    "requested_networks, security_groups, block_device_mapping, node, limits, host_list"
                ),
                up_to="5.10",
            ),
        ),
    ),
    Method(
        "cache_images",
        "host, image_ids",
        host="host",
        call=True,
        long=True,
        sent=(
            Sent("6.0", "image_ids"),
            Sent("5.4", up_to="5.13"),
            Sent(up_to="5.3", refuses="NovaException"),
        ),
    ),
    Method(
        "check_instance_shared_storage",
        "data, instance=None, host=None",
        host="host",
        call=True,
        sent=(
            Sent("6.0", "data", topic="compute-alt"),
            Sent("6.0", up_to="6.4"),
            Sent("5.0", "data, instance", up_to="5.13"),
        ),
    ),
    Method(
        "get_host_uptime",
        "host",
        host="host",
        call=True,
        sent=(
            Sent("6.0", ""),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "host_maintenance_mode",
        "host, host_param, mode",
        host="host",
        call=True,
        sent=(
            Sent("6.0", "host, mode", source={"host": "host_param"}),
            Sent("5.0", up_to="5.13", source={"host": "host_param"}),
        ),
    ),
    Method(
        "host_power_action",
        "host, action",
        host="host",
        call=True,
        sent=(
            Sent("6.0", "action"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "pause_instance",
        "instance",
        host="instance.host",
        sent=(
            Sent("6.0", "instance"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "quiesce_instance",
        "instance",
        host="instance.host",
        call=True,
        sent=(
            Sent("6.0", "instance"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "reboot_instance",
        "instance, block_device_info, reboot_type",
        host="instance.host",
        sent=(
            Sent("6.0", "instance, block_device_info, reboot_type"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "rescue_instance",
        "instance, rescue_password, rescue_image_ref=None, clean_shutdown=True",
        host="instance.host",
        sent=(
            Sent("6.0", "rescue_password, clean_shutdown, rescue_image_ref, instance"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "restore_instance",
        "instance",
        host="instance.host",
        sent=(
            Sent("6.0", "instance"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "resume_instance",
        "instance",
        host="instance.host",
        sent=(
            Sent("6.0", "instance"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "set_admin_password",
        "instance, new_pass",
        host="instance.host",
        call=True,
        sent=(
            Sent("6.0", "instance, new_pass"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "set_host_enabled",
        "host, enabled",
        host="host",
        call=True,
        long=True,
        sent=(
            Sent("6.0", "enabled"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "snapshot_instance",
        "instance, image_id",
        host="instance.host",
        sent=(
            Sent("6.0", "instance, image_id"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "soft_delete_instance",
        "instance",
        host="instance.host",
        sent=(
            Sent("6.0", "instance"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "start_instance",
        "instance",
        host="instance.host",
        sent=(
            Sent("6.0", "instance"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "stop_instance",
        "instance, do_cast=True, clean_shutdown=True",
        host="instance.host",
        either="do_cast",
        sent=(
            Sent("6.0", "instance, clean_shutdown"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "suspend_instance",
        "instance",
        host="instance.host",
        sent=(
            Sent("6.0", "instance"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "terminate_instance",
        "instance, bdms",
        host="instance.host",
        sent=(
            Sent("6.0", "instance, bdms"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "unpause_instance",
        "instance",
        host="instance.host",
        sent=(
            Sent("6.0", "instance"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "unquiesce_instance",
        "instance, mapping=None",
        host="instance.host",
        sent=(
            Sent("6.0", "instance, mapping"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "unrescue_instance",
        "instance",
        host="instance.host",
        sent=(
            Sent("6.0", "instance"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
)
