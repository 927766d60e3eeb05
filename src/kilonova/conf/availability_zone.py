"""Names of availability zones that no aggregate gives, in the default group."""

from oslo_config import cfg

GROUP: str | None = None

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "default_availability_zone",
        default="nova",
        help="Availability zone of compute hosts that are in no aggregate with a zone."
        " Users should not ask for it by name.",
    ),
    cfg.StrOpt(
        "internal_service_availability_zone",
        default="internal",
        help="Availability zone shown for services that are not compute hosts.",
    ),
]
