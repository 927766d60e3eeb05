"""The previous major version of the compute interface, as services that are still held to it speak it.

Only what differs from the present version is here; every other method is the present one. Source: Nova's RPC
interfaces.
"""

from __future__ import annotations

from kilonova.contract.rpc import compute
from kilonova.contract.rpc.table import Api, Served

DIFFERENT = (
    Served(
        "build_and_run_instance",
        (
            "instance, image, request_spec, filter_properties, admin_password=None, injected_files=None, "
            "requested_networks=None, security_groups=None, block_device_mapping=None, node=None, "
            "limits=None, host_list=None, accel_uuids=None"
        ),
    ),
    Served(
        "check_can_live_migrate_destination", "instance, block_migration, disk_over_commit, migration=None, limits=None"
    ),
    Served("check_instance_shared_storage", "instance, data", newer={"instance": None}),
    Served("finish_resize", "disk_info, image, instance, migration, request_spec=None"),
    Served("finish_revert_resize", "instance, migration, request_spec=None"),
    Served(
        "finish_snapshot_based_resize_at_dest",
        "instance, migration, snapshot_id, request_spec",
        newer={"request_spec": None},
    ),
    Served("pre_live_migration", "instance, block_migration, disk, migrate_data", newer={"block_migration": None}),
    Served(
        "prep_resize",
        ("image, instance, instance_type, request_spec, filter_properties, node, clean_shutdown, migration, host_list"),
        newer={"instance_type": "flavor"},
    ),
    Served(
        "prep_snapshot_based_resize_at_dest",
        "instance, flavor, nodename, migration, limits, request_spec",
        newer={"request_spec": None},
    ),
    Served(
        "rebuild_instance",
        (
            "instance, orig_image_ref, image_ref, injected_files, new_pass, orig_sys_metadata, bdms, "
            "recreate, on_shared_storage, preserve_ephemeral, migration, scheduled_node, limits, "
            "request_spec, accel_uuids=None"
        ),
    ),
    Served(
        "resize_instance",
        "instance, image, migration, instance_type, clean_shutdown, request_spec=None",
        newer={"instance_type": "flavor"},
    ),
    Served("revert_resize", "instance, migration, request_spec=None"),
    Served("shelve_instance", "instance, image_id, clean_shutdown, accel_uuids=None"),
    Served("shelve_offload_instance", "instance, clean_shutdown, accel_uuids=None"),
    Served("unshelve_instance", "instance, image, filter_properties, node, request_spec=None, accel_uuids=None"),
)

_NAMES = {served.name for served in DIFFERENT}

API = Api(
    name="compute",
    topic=compute.API.topic,
    alt_topic=compute.API.alt_topic,
    version="5.13",
    namespace=None,
    methods=(),
    served=DIFFERENT + tuple(served for served in compute.API.served if served.name not in _NAMES),
    newer=compute.API,
)
