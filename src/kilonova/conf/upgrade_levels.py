"""Highest versions that may be spoken while old and new services run side by side."""

from oslo_config import cfg

GROUP: str | None = "upgrade_levels"

_HELP = (
    "Highest version of the {} interface to send: a version such as 6.2 or the name of a release. "
    "Unset sends the newest."
)

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "compute",
        help=_HELP.format("compute")
        + " `auto` takes the lowest version that the registered compute services understand.",
    ),
    cfg.StrOpt("scheduler", help=_HELP.format("scheduler")),
    cfg.StrOpt("conductor", help=_HELP.format("conductor")),
    cfg.StrOpt("baseapi", help=_HELP.format("base (ping)")),
]
