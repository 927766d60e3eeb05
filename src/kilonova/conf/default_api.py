"""Options of the compute API that live in the default group."""

from oslo_config import cfg

GROUP: str | None = None

OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt("password_length", default=12, min=0, help="Length of generated administrator passwords."),
    cfg.IntOpt(
        "reclaim_instance_interval",
        default=0,
        help="Seconds that a deleted server can be restored; 0 or less deletes at once.",
    ),
    cfg.StrOpt("default_schedule_zone", help="Availability zone of servers created without one."),
    cfg.StrOpt(
        "osapi_compute_unique_server_name_scope",
        default="",
        choices=[
            ("", "Names need not differ."),
            ("project", "Names differ within a project."),
            ("global", "Names differ everywhere."),
        ],
        help="Where server names must be unique, whatever their case.",
    ),
    cfg.IntOpt(
        "max_local_block_devices",
        default=3,
        help="Most local disks of a server; 0 refuses servers that boot from an image, a negative number is no limit.",
    ),
]
