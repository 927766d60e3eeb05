"""Options of the default group that the compute agent obeys."""

from __future__ import annotations

from oslo_config import cfg

GROUP: str | None = None

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "compute_driver",
        help="The virtualization driver, as module.Class: libvirt.LibvirtDriver, or fake.FakeDriver for tests.",
    ),
    cfg.IntOpt(
        "max_concurrent_builds",
        default=10,
        min=0,
        help="Servers that are built at once on this host, others wait; 0 is no limit.",
    ),
    cfg.IntOpt(
        "shutdown_timeout",
        default=60,
        min=0,
        help="Seconds a guest may take to shut down when it is stopped, then its power is cut; 0 cuts at once. "
        "The image property os_shutdown_timeout goes before it.",
    ),
    cfg.IntOpt("reserved_host_memory_mb", default=512, min=0, help="Memory in MiB that guests do not get."),
    cfg.IntOpt("reserved_host_disk_mb", default=0, min=0, help="Disk space in MiB that guests do not get."),
    cfg.IntOpt("reserved_host_cpus", default=0, min=0, help="Processors that guests do not get."),
    cfg.FloatOpt(
        "cpu_allocation_ratio",
        min=0.0,
        help="Virtual processors per physical one. Unset: initial_cpu_allocation_ratio for a new host, "
        "and what Placement holds is left alone later.",
    ),
    cfg.FloatOpt(
        "ram_allocation_ratio", min=0.0, help="The same for memory; values above 1 overcommit and need swap space."
    ),
    cfg.FloatOpt("disk_allocation_ratio", min=0.0, help="The same for disk space."),
    cfg.FloatOpt(
        "initial_cpu_allocation_ratio", default=4.0, min=0.0, help="Processor ratio of a host that is registered anew."
    ),
    cfg.FloatOpt(
        "initial_ram_allocation_ratio", default=1.0, min=0.0, help="Memory ratio of a host that is registered anew."
    ),
    cfg.FloatOpt(
        "initial_disk_allocation_ratio", default=1.0, min=0.0, help="Disk ratio of a host that is registered anew."
    ),
    cfg.IntOpt(
        "update_resources_interval",
        default=0,
        help="Seconds between two looks at the host's resources; 0 stands for 60, less than 0 looks only at start.",
    ),
    cfg.IntOpt(
        "sync_power_state_interval",
        default=600,
        help="Seconds between two comparisons of all guests' power states with the record; "
        "0 stands for 60, less than 0 makes none.",
    ),
    cfg.IntOpt(
        "heal_instance_info_cache_interval",
        default=-1,
        help="Seconds between two repairs of one server's cached network information; "
        "0 or less repairs only on events.",
    ),
    cfg.StrOpt(
        "running_deleted_instance_action",
        default="reap",
        choices=[
            ("reap", "Shut the guest down and remove it."),
            ("shutdown", "Shut the guest down and keep its disks."),
            ("log", "Say so in the log."),
            ("noop", "Do not look."),
        ],
        help="What to do with a guest that runs although its server was deleted.",
    ),
    cfg.IntOpt(
        "running_deleted_instance_poll_interval",
        default=1800,
        help="Seconds between two searches for such guests; 0 stands for 60, less than 0 never searches.",
    ),
    cfg.IntOpt(
        "running_deleted_instance_timeout",
        default=0,
        help="Seconds since the deletion before something is done about such a guest.",
    ),
    cfg.IntOpt(
        "instance_delete_interval",
        default=300,
        help="Seconds between two searches for deleted servers whose files are still on the host; "
        "0 stands for 60, less than 0 never searches.",
    ),
    cfg.IntOpt(
        "maximum_instance_delete_attempts",
        default=5,
        min=1,
        help="How often such files are tried to be removed.",
    ),
    cfg.BoolOpt(
        "resume_guests_state_on_host_boot",
        default=False,
        help="Start guests that ran before the host went down.",
    ),
    cfg.StrOpt(
        "default_access_ip_network_name",
        help="Network whose first addresses become a new server's access addresses when it was given none.",
    ),
    cfg.IntOpt(
        "block_device_allocate_retries",
        default=60,
        min=0,
        help="How often to look whether a new volume is ready before a build fails.",
    ),
    cfg.IntOpt("block_device_allocate_retries_interval", default=3, min=0, help="Seconds between two of these looks."),
    cfg.IntOpt(
        "instance_build_timeout",
        default=0,
        min=0,
        help="Seconds after which a server that still builds on this host goes to ERROR; 0 waits for ever.",
    ),
    cfg.IntOpt(
        "scheduler_instance_sync_interval",
        default=120,
        help="Seconds between two lists of this host's servers sent to the schedulers; "
        "0 stands for 60, less than 0 sends none.",
    ),
]
