"""Calls to compute hosts that move a server, resize it, rebuild it or shelve it."""

from __future__ import annotations

from kilonova.contract.rpc.table import Method, Sent

METHODS = (
    Method(
        "check_can_live_migrate_destination",
        "instance, destination, block_migration, disk_over_commit, migration, limits",
        host="destination",
        call=True,
        long=True,
        sent=(
            Sent("6.0", "instance, block_migration, disk_over_commit, migration, limits"),
            Sent("5.3", up_to="5.13"),
            Sent("5.0", "instance, block_migration, disk_over_commit", up_to="5.2"),
        ),
    ),
    Method(
        "check_can_live_migrate_source",
        "instance, dest_check_data",
        host="instance.host",
        call=True,
        sent=(
            Sent("6.0", "instance, dest_check_data"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "confirm_resize",
        "instance, migration, host, cast=True",
        host="host",
        either="cast",
        sent=(
            Sent("6.0", "instance, migration"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "confirm_snapshot_based_resize_at_source",
        "instance, migration",
        host="migration.source_compute",
        call=True,
        long=True,
        sent=(
            Sent("6.0", "instance, migration"),
            Sent("5.8", up_to="5.13"),
            Sent(up_to="5.7", refuses="MigrationError"),
        ),
    ),
    Method(
        "drop_move_claim_at_destination",
        "instance, host",
        host="host",
        call=True,
        sent=(
            Sent("6.0", "instance", topic="compute-alt"),
            Sent("6.0", up_to="6.4"),
            Sent("5.3", up_to="5.13"),
        ),
    ),
    Method(
        "finish_resize",
        "instance, migration, image, disk_info, host, request_spec",
        host="host",
        sent=(
            Sent("6.0", "instance, migration, image, disk_info, request_spec", topic="compute-alt"),
            Sent("6.0", up_to="6.4"),
            Sent("5.2", up_to="5.13"),
            Sent("5.0", "instance, migration, image, disk_info", up_to="5.1"),
        ),
    ),
    Method(
        "finish_revert_resize",
        "instance, migration, host, request_spec",
        host="host",
        sent=(
            Sent("6.0", "instance, migration, request_spec", topic="compute-alt"),
            Sent("6.0", up_to="6.4"),
            Sent("5.2", up_to="5.13"),
            Sent("5.0", "instance, migration", up_to="5.1"),
        ),
    ),
    Method(
        "finish_revert_snapshot_based_resize_at_source",
        "instance, migration",
        host="migration.source_compute",
        call=True,
        long=True,
        sent=(
            Sent("6.0", "instance, migration", topic="compute-alt"),
            Sent("6.0", up_to="6.4"),
            Sent("5.10", up_to="5.13"),
            Sent(up_to="5.9", refuses="MigrationError"),
        ),
    ),
    Method(
        "finish_snapshot_based_resize_at_dest",
        "instance, migration, snapshot_id, request_spec",
        host="migration.dest_compute",
        call=True,
        long=True,
        sent=(
            Sent("6.0", "instance, migration, snapshot_id", topic="compute-alt"),
            Sent("6.0", up_to="6.4"),
            Sent("5.7", "instance, migration, snapshot_id, request_spec", up_to="5.13"),
            Sent(up_to="5.6", refuses="MigrationError"),
        ),
    ),
    Method(
        "live_migration",
        "instance, dest, block_migration, host, migration, migrate_data=None",
        host="host",
        sent=(
            Sent("6.0", "instance, dest, block_migration, migrate_data, migration", topic="compute-alt"),
            Sent("6.0", up_to="6.4"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "live_migration_abort",
        "instance, migration_id",
        host="instance.host",
        sent=(
            Sent("6.0", "instance, migration_id"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "live_migration_force_complete",
        "instance, migration",
        host="migration.source_compute",
        sent=(
            Sent("6.0", "instance"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "post_live_migration_at_destination",
        "instance, block_migration, host",
        host="host",
        call=True,
        long=True,
        sent=(
            Sent("6.0", "instance, block_migration", topic="compute-alt"),
            Sent("6.0", up_to="6.4"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "pre_live_migration",
        "instance, block_migration, disk, host, migrate_data",
        host="host",
        call=True,
        long=True,
        sent=(
            Sent("6.0", "instance, disk, migrate_data", topic="compute-alt"),
            Sent("6.0", up_to="6.4"),
            Sent(
                "5.0",
                "instance, disk, migrate_data, block_migration",
                up_to="5.13",
                forms={"block_migration": "nothing"},
            ),
        ),
    ),
    Method(
        "prep_resize",
        ("instance, image, flavor, host, migration, request_spec, filter_properties, node, clean_shutdown, host_list"),
        host="host",
        sent=(
            Sent(
                "6.0",
                (
                    "instance, flavor, image, request_spec, filter_properties, node, migration, clean_shutdown, "
                    "host_list"
                ),
            ),
            Sent(
                "5.1",
                (
                    "instance, image, request_spec, filter_properties, node, migration, clean_shutdown, "
                    "host_list, instance_type"
                ),
                up_to="5.13",
                source={"instance_type": "flavor"},
            ),
            Sent(
                "5.0",
                (
                    "instance, image, request_spec, filter_properties, node, migration, clean_shutdown, "
                    "host_list, instance_type"
                ),
                up_to="5.0",
                source={"instance_type": "flavor"},
                forms={"request_spec": "request_spec_dict"},
            ),
        ),
    ),
    Method(
        "prep_snapshot_based_resize_at_dest",
        "instance, flavor, nodename, migration, limits, request_spec, destination",
        host="destination",
        call=True,
        long=True,
        sent=(
            Sent("6.0", "instance, flavor, nodename, migration, limits"),
            Sent("5.5", "instance, flavor, nodename, migration, limits, request_spec", up_to="5.13"),
            Sent(up_to="5.4", refuses="MigrationPreCheckError"),
        ),
    ),
    Method(
        "prep_snapshot_based_resize_at_source",
        "instance, migration, snapshot_id=None",
        host="instance.host",
        call=True,
        long=True,
        sent=(
            Sent("6.0", "instance, migration, snapshot_id", topic="compute-alt"),
            Sent("6.0", up_to="6.4"),
            Sent("5.6", up_to="5.13"),
            Sent(up_to="5.5", refuses="MigrationError"),
        ),
    ),
    Method(
        "rebuild_instance",
        (
            "instance, new_pass, injected_files, image_ref, orig_image_ref, orig_sys_metadata, bdms, "
            "recreate, on_shared_storage, host, node, preserve_ephemeral, migration, limits, "
            "request_spec, accel_uuids, reimage_boot_volume, target_state"
        ),
        host="host",
        sent=(
            Sent(
                "6.2",
                (
                    "instance, new_pass, injected_files, image_ref, orig_image_ref, orig_sys_metadata, bdms, "
                    "recreate, on_shared_storage, preserve_ephemeral, migration, scheduled_node, limits, "
                    "request_spec, accel_uuids, reimage_boot_volume, target_state"
                ),
                source={"scheduled_node": "node"},
            ),
            Sent(
                "6.1",
                (
                    "instance, new_pass, injected_files, image_ref, orig_image_ref, orig_sys_metadata, bdms, "
                    "recreate, on_shared_storage, preserve_ephemeral, migration, scheduled_node, limits, "
                    "request_spec, accel_uuids, reimage_boot_volume"
                ),
                up_to="6.1",
                source={"scheduled_node": "node"},
                refuses="UnsupportedRPCVersion",
            ),
            Sent(
                "6.0",
                (
                    "instance, new_pass, injected_files, image_ref, orig_image_ref, orig_sys_metadata, bdms, "
                    "recreate, on_shared_storage, preserve_ephemeral, migration, scheduled_node, limits, "
                    "request_spec, accel_uuids"
                ),
                up_to="6.0",
                source={"scheduled_node": "node"},
                refuses="UnsupportedRPCVersion",
            ),
            Sent("5.12", up_to="5.13", source={"scheduled_node": "node"}, refuses="UnsupportedRPCVersion"),
            Sent(
                "5.0",
                (
                    "instance, new_pass, injected_files, image_ref, orig_image_ref, orig_sys_metadata, bdms, "
                    "recreate, on_shared_storage, preserve_ephemeral, migration, scheduled_node, limits, "
                    "request_spec"
                ),
                up_to="5.11",
                source={"scheduled_node": "node"},
                refuses="UnsupportedRPCVersion",
            ),
        ),
    ),
    Method(
        "resize_instance",
        "instance, migration, image, flavor, request_spec, clean_shutdown=True",
        host="instance.host",
        sent=(
            Sent("6.0", "instance, migration, image, flavor, clean_shutdown, request_spec", topic="compute-alt"),
            Sent("6.0", up_to="6.4"),
            Sent(
                "5.2",
                "instance, migration, image, clean_shutdown, request_spec, instance_type",
                up_to="5.13",
                source={"instance_type": "flavor"},
            ),
            Sent(
                "5.0",
                "instance, migration, image, clean_shutdown, instance_type",
                up_to="5.1",
                source={"instance_type": "flavor"},
            ),
        ),
    ),
    Method(
        "revert_resize",
        "instance, migration, host, request_spec",
        host="host",
        sent=(
            Sent("6.0", "instance, migration, request_spec"),
            Sent("5.2", up_to="5.13"),
            Sent("5.0", "instance, migration", up_to="5.1"),
        ),
    ),
    Method(
        "revert_snapshot_based_resize_at_dest",
        "instance, migration",
        host="migration.dest_compute",
        call=True,
        long=True,
        sent=(
            Sent("6.0", "instance, migration"),
            Sent("5.9", up_to="5.13"),
            Sent(up_to="5.8", refuses="MigrationError"),
        ),
    ),
    Method(
        "rollback_live_migration_at_destination",
        "instance, host, destroy_disks, migrate_data",
        host="host",
        sent=(
            Sent("6.0", "instance, destroy_disks, migrate_data", topic="compute-alt"),
            Sent("6.0", up_to="6.4"),
            Sent("5.0", up_to="5.13"),
        ),
    ),
    Method(
        "shelve_instance",
        "instance, image_id=None, clean_shutdown=True, accel_uuids=None",
        host="instance.host",
        sent=(
            Sent("6.0", "instance, image_id, clean_shutdown, accel_uuids"),
            Sent("5.13", up_to="5.13"),
            Sent("5.0", "instance, image_id, clean_shutdown", up_to="5.12", refuses="ForbiddenWithAccelerators"),
        ),
    ),
    Method(
        "shelve_offload_instance",
        "instance, clean_shutdown=True, accel_uuids=None",
        host="instance.host",
        sent=(
            Sent("6.0", "instance, clean_shutdown, accel_uuids"),
            Sent("5.13", up_to="5.13"),
            Sent("5.0", "instance, clean_shutdown", up_to="5.12"),
        ),
    ),
    Method(
        "unshelve_instance",
        ("instance, host, request_spec, image=None, filter_properties=None, node=None, accel_uuids=None"),
        host="host",
        sent=(
            Sent("6.0", "instance, image, filter_properties, node, request_spec, accel_uuids"),
            Sent("5.13", up_to="5.13"),
            Sent("5.2", "instance, image, filter_properties, node, request_spec", up_to="5.12"),
            Sent("5.0", "instance, image, filter_properties, node", up_to="5.1"),
        ),
    ),
)
