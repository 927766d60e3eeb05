"""Options of our own about processes: threads of the built-in servers, hosts of an agent process."""

from __future__ import annotations

from oslo_config import cfg

GROUP: str | None = "kilonova"

OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt("api_threads", default=16, min=1, help="Requests that the built-in API server answers at once."),
    cfg.IntOpt(
        "metadata_threads", default=4, min=1, help="Requests that the built-in metadata server answers at once."
    ),
    cfg.ListOpt(
        "hosts",
        default=[],
        help="Names of the hosts that one nova-compute process stands for, each with a state directory of its own "
        "below state_path; for the fake driver. Empty: the one host that `host` names.",
    ),
]
