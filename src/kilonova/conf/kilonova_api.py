"""Options of our own that the API obeys."""

from oslo_config import cfg

GROUP: str | None = "kilonova"

OPTIONS: list[cfg.Opt] = [
    cfg.FloatOpt(
        "security_groups_max_age",
        default=5.0,
        min=0.0,
        help="Seconds for which the names of a port's security groups are shown without asking Neutron again;"
        " 0 asks for every document of a server.",
    ),
]
