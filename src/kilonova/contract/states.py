"""The states of a server and their names on the wire, in the databases and in REST.

Values are plain strings (integers for power states) because they are stored and sent as such.
``VM.ACTIVE``, ``Task.SPAWNING``, ``Power.RUNNING``, ``Action.START`` read the same in every room.

Source: the API reference's "Server concepts" and the enumerations of the versioned notifications.
"""

from collections.abc import Mapping
from typing import Final


class VM:
    """``instances.vm_state``: what the user was promised; stable while no task runs."""

    ACTIVE: Final = "active"
    BUILDING: Final = "building"
    DELETED: Final = "deleted"
    ERROR: Final = "error"
    PAUSED: Final = "paused"
    RESCUED: Final = "rescued"
    RESIZED: Final = "resized"
    SHELVED: Final = "shelved"
    SHELVED_OFFLOADED: Final = "shelved_offloaded"
    SOFT_DELETED: Final = "soft-delete"
    STOPPED: Final = "stopped"
    SUSPENDED: Final = "suspended"


class Task:
    """``instances.task_state``: the operation that holds the server, None when none does."""

    BLOCK_DEVICE_MAPPING: Final = "block_device_mapping"
    DELETING: Final = "deleting"
    IMAGE_BACKUP: Final = "image_backup"
    IMAGE_PENDING_UPLOAD: Final = "image_pending_upload"
    IMAGE_SNAPSHOT: Final = "image_snapshot"
    IMAGE_SNAPSHOT_PENDING: Final = "image_snapshot_pending"
    IMAGE_UPLOADING: Final = "image_uploading"
    MIGRATING: Final = "migrating"
    NETWORKING: Final = "networking"
    PAUSING: Final = "pausing"
    POWERING_OFF: Final = "powering-off"
    POWERING_ON: Final = "powering-on"
    REBOOTING: Final = "rebooting"
    REBOOTING_HARD: Final = "rebooting_hard"
    REBOOT_PENDING: Final = "reboot_pending"
    REBOOT_PENDING_HARD: Final = "reboot_pending_hard"
    REBOOT_STARTED: Final = "reboot_started"
    REBOOT_STARTED_HARD: Final = "reboot_started_hard"
    REBUILDING: Final = "rebuilding"
    REBUILD_BLOCK_DEVICE_MAPPING: Final = "rebuild_block_device_mapping"
    REBUILD_SPAWNING: Final = "rebuild_spawning"
    RESCUING: Final = "rescuing"
    RESIZE_CONFIRMING: Final = "resize_confirming"
    RESIZE_FINISH: Final = "resize_finish"
    RESIZE_MIGRATED: Final = "resize_migrated"
    RESIZE_MIGRATING: Final = "resize_migrating"
    RESIZE_PREP: Final = "resize_prep"
    RESIZE_REVERTING: Final = "resize_reverting"
    RESTORING: Final = "restoring"
    RESUMING: Final = "resuming"
    SCHEDULING: Final = "scheduling"
    SHELVING: Final = "shelving"
    SHELVING_IMAGE_PENDING_UPLOAD: Final = "shelving_image_pending_upload"
    SHELVING_IMAGE_UPLOADING: Final = "shelving_image_uploading"
    SHELVING_OFFLOADING: Final = "shelving_offloading"
    SOFT_DELETING: Final = "soft-deleting"
    SPAWNING: Final = "spawning"
    SUSPENDING: Final = "suspending"
    UNPAUSING: Final = "unpausing"
    UNRESCUING: Final = "unrescuing"
    UNSHELVING: Final = "unshelving"
    UPDATING_PASSWORD: Final = "updating_password"  # noqa: S105


class Power:
    """``instances.power_state``: what the hypervisor last reported."""

    PENDING: Final = 0
    RUNNING: Final = 1
    PAUSED: Final = 3
    SHUTDOWN: Final = 4
    CRASHED: Final = 6
    SUSPENDED: Final = 7


class Action:
    """Names of instance actions (``instance_actions.action``)."""

    ATTACH_INTERFACE: Final = "attach_interface"
    ATTACH_SHARE: Final = "attach_share"
    ATTACH_VOLUME: Final = "attach_volume"
    BACKUP: Final = "createBackup"
    CHANGE_PASSWORD: Final = "changePassword"  # noqa: S105
    CONFIRM_RESIZE: Final = "confirmResize"
    CREATE: Final = "create"
    CREATE_IMAGE: Final = "createImage"
    DELETE: Final = "delete"
    DETACH_INTERFACE: Final = "detach_interface"
    DETACH_SHARE: Final = "detach_share"
    DETACH_VOLUME: Final = "detach_volume"
    EVACUATE: Final = "evacuate"
    EXTEND_VOLUME: Final = "extend_volume"
    LIVE_MIGRATION: Final = "live-migration"
    LIVE_MIGRATION_CANCEL: Final = "live_migration_cancel"
    LIVE_MIGRATION_FORCE_COMPLETE: Final = "live_migration_force_complete"
    LOCK: Final = "lock"
    MIGRATE: Final = "migrate"
    NOVA_MANAGE_REFRESH_VOLUME_ATTACHMENT: Final = "refresh_volume_attachment"
    PAUSE: Final = "pause"
    REBOOT: Final = "reboot"
    REBUILD: Final = "rebuild"
    RESCUE: Final = "rescue"
    RESET_STATE: Final = "resetState"
    RESIZE: Final = "resize"
    RESTORE: Final = "restore"
    RESUME: Final = "resume"
    REVERT_RESIZE: Final = "revertResize"
    SHELVE: Final = "shelve"
    SHELVE_OFFLOAD: Final = "shelveOffload"
    START: Final = "start"
    STOP: Final = "stop"
    SUSPEND: Final = "suspend"
    SWAP_VOLUME: Final = "swap_volume"
    TRIGGER_CRASH_DUMP: Final = "trigger_crash_dump"
    UNLOCK: Final = "unlock"
    UNPAUSE: Final = "unpause"
    UNRESCUE: Final = "unrescue"
    UNSHELVE: Final = "unshelve"


class MigrationType:
    """``migrations.migration_type``."""

    MIGRATION: Final = "migration"
    RESIZE: Final = "resize"
    LIVE_MIGRATION: Final = "live-migration"
    EVACUATION: Final = "evacuation"


POWER_STATE_NAMES: Final[Mapping[int, str]] = {
    Power.PENDING: "pending",
    Power.RUNNING: "running",
    Power.PAUSED: "paused",
    Power.SHUTDOWN: "shutdown",
    Power.CRASHED: "crashed",
    Power.SUSPENDED: "suspended",
}

# Lists of states under the names by which operators' tools know them.
VM_STATE_LISTS: Final[Mapping[str, list[str]]] = {
    "ALLOW_HARD_REBOOT": [VM.ACTIVE, VM.STOPPED, VM.PAUSED, VM.SUSPENDED, VM.ERROR],
    "ALLOW_SOFT_REBOOT": [VM.ACTIVE],
    "ALLOW_TARGET_STATES": [VM.STOPPED],
    "ALLOW_TRIGGER_CRASH_DUMP": [VM.ACTIVE, VM.PAUSED, VM.RESCUED, VM.RESIZED, VM.ERROR],
}
TASK_STATE_LISTS: Final[Mapping[str, list[str | None]]] = {
    "ALLOW_REBOOT": [
        None,
        Task.REBOOTING,
        Task.REBOOT_PENDING,
        Task.REBOOT_STARTED,
        Task.RESUMING,
        Task.REBOOTING_HARD,
        Task.UNPAUSING,
        Task.PAUSING,
        Task.SUSPENDING,
    ],
}

# Names of instance action events: the step of an action, prefixed by the room that performs it.
ACTION_EVENTS: Final[frozenset[str]] = frozenset(
    {
        "cold_migrate",
        "compute__do_build_and_run_instance",
        "compute_allow_share",
        "compute_attach_interface",
        "compute_attach_volume",
        "compute_backup_instance",
        "compute_check_can_live_migrate_destination",
        "compute_check_can_live_migrate_source",
        "compute_confirm_resize",
        "compute_confirm_snapshot_based_resize_at_source",
        "compute_deny_share",
        "compute_detach_interface",
        "compute_detach_volume",
        "compute_extend_volume",
        "compute_finish_resize",
        "compute_finish_revert_resize",
        "compute_finish_revert_snapshot_based_resize_at_source",
        "compute_finish_snapshot_based_resize_at_dest",
        "compute_live_migration",
        "compute_live_migration_abort",
        "compute_live_migration_force_complete",
        "compute_pause_instance",
        "compute_post_live_migration_at_destination",
        "compute_power_update",
        "compute_pre_live_migration",
        "compute_prep_resize",
        "compute_prep_snapshot_based_resize_at_dest",
        "compute_prep_snapshot_based_resize_at_source",
        "compute_reboot_instance",
        "compute_rebuild_instance",
        "compute_rescue_instance",
        "compute_resize_instance",
        "compute_restore_instance",
        "compute_resume_instance",
        "compute_revert_resize",
        "compute_revert_snapshot_based_resize_at_dest",
        "compute_rollback_live_migration_at_destination",
        "compute_set_admin_password",
        "compute_shelve_instance",
        "compute_shelve_offload_instance",
        "compute_snapshot_instance",
        "compute_soft_delete_instance",
        "compute_start_instance",
        "compute_stop_instance",
        "compute_suspend_instance",
        "compute_swap_volume",
        "compute_terminate_instance",
        "compute_trigger_crash_dump",
        "compute_unpause_instance",
        "compute_unrescue_instance",
        "compute_unshelve_instance",
        "conductor_confirm_snapshot_based_resize",
        "conductor_live_migrate_instance",
        "conductor_migrate_server",
        "conductor_revert_snapshot_based_resize",
        "get_image_info",
        "rebuild_server",
        "schedule_instances",
    }
)
MIGRATION_STATUSES: Final[frozenset[str]] = frozenset(
    {
        "accepted",
        "cancelled",
        "completed",
        "confirmed",
        "confirming",
        "done",
        "error",
        "failed",
        "finished",
        "migrating",
        "post-migrating",
        "pre-migrating",
        "preparing",
        "queued",
        "reverted",
        "reverting",
        "running",
        "running (post-copy)",
    }
)
HOST_STATUSES: Final[tuple[str, ...]] = ("UP", "DOWN", "MAINTENANCE", "UNKNOWN", "")

STATUS_UNKNOWN: Final = "UNKNOWN"
DEFAULT_STATUS: Final = "default"
# vm_state -> task_state (or "default") -> the ``status`` of a server in REST.
STATUS_MAP: Final[Mapping[str, Mapping[str, str]]] = {
    VM.ACTIVE: {
        DEFAULT_STATUS: "ACTIVE",
        Task.MIGRATING: "MIGRATING",
        Task.REBOOT_PENDING: "REBOOT",
        Task.REBOOT_PENDING_HARD: "HARD_REBOOT",
        Task.REBOOT_STARTED: "REBOOT",
        Task.REBOOT_STARTED_HARD: "HARD_REBOOT",
        Task.REBOOTING: "REBOOT",
        Task.REBOOTING_HARD: "HARD_REBOOT",
        Task.REBUILD_BLOCK_DEVICE_MAPPING: "REBUILD",
        Task.REBUILD_SPAWNING: "REBUILD",
        Task.REBUILDING: "REBUILD",
        Task.RESIZE_FINISH: "RESIZE",
        Task.RESIZE_MIGRATED: "RESIZE",
        Task.RESIZE_MIGRATING: "RESIZE",
        Task.RESIZE_PREP: "RESIZE",
        Task.UPDATING_PASSWORD: "PASSWORD",
    },
    VM.BUILDING: {DEFAULT_STATUS: "BUILD"},
    VM.DELETED: {DEFAULT_STATUS: "DELETED"},
    VM.ERROR: {
        DEFAULT_STATUS: "ERROR",
        Task.REBUILD_BLOCK_DEVICE_MAPPING: "REBUILD",
        Task.REBUILD_SPAWNING: "REBUILD",
        Task.REBUILDING: "REBUILD",
    },
    VM.PAUSED: {
        DEFAULT_STATUS: "PAUSED",
        Task.MIGRATING: "MIGRATING",
    },
    VM.RESCUED: {DEFAULT_STATUS: "RESCUE"},
    VM.RESIZED: {
        DEFAULT_STATUS: "VERIFY_RESIZE",
        Task.RESIZE_REVERTING: "REVERT_RESIZE",
    },
    VM.SHELVED: {DEFAULT_STATUS: "SHELVED"},
    VM.SHELVED_OFFLOADED: {DEFAULT_STATUS: "SHELVED_OFFLOADED"},
    VM.SOFT_DELETED: {DEFAULT_STATUS: "SOFT_DELETED"},
    VM.STOPPED: {
        DEFAULT_STATUS: "SHUTOFF",
        Task.REBUILD_BLOCK_DEVICE_MAPPING: "REBUILD",
        Task.REBUILD_SPAWNING: "REBUILD",
        Task.REBUILDING: "REBUILD",
        Task.RESIZE_FINISH: "RESIZE",
        Task.RESIZE_MIGRATED: "RESIZE",
        Task.RESIZE_MIGRATING: "RESIZE",
        Task.RESIZE_PREP: "RESIZE",
    },
    VM.SUSPENDED: {DEFAULT_STATUS: "SUSPENDED"},
}


def status(vm_state: str | None, task_state: str | None) -> str:
    """The ``status`` that REST shows for a pair of states."""
    by_task = STATUS_MAP.get(vm_state or "")
    if by_task is None:
        return STATUS_UNKNOWN
    return by_task.get(task_state or DEFAULT_STATUS) or by_task[DEFAULT_STATUS]


def states_of_status(wanted: str) -> tuple[set[str], set[str]]:
    """The vm states and task states that REST may show as ``wanted`` (any case).

    A status that is some vm state's default returns "default" among the task states, as the list filters need it.
    """
    wanted = wanted.upper()
    pairs = {(vm, task) for vm, by_task in STATUS_MAP.items() for task, shown in by_task.items() if shown == wanted}
    return {vm for vm, _ in pairs}, {task for _, task in pairs}
