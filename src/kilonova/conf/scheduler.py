"""[scheduler]: which hosts Placement is asked for, and how many tries a server gets."""

from __future__ import annotations

from oslo_config import cfg

GROUP: str | None = "scheduler"
OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt(
        "max_attempts",
        default=3,
        min=1,
        help="Hosts tried for one server: the chosen one and its alternates. 1 means no second try.",
    ),
    cfg.IntOpt(
        "max_placement_results",
        default=1000,
        min=1,
        help="Most allocation candidates to ask Placement for; a request about a group or named hosts asks for all.",
    ),
    cfg.IntOpt(
        "discover_hosts_in_cells_interval",
        default=-1,
        min=-1,
        help="Seconds between two looks for hosts that no cell has yet; -1: never, new hosts are mapped by hand. "
        "0: once a minute.",
    ),
    cfg.BoolOpt(
        "limit_tenants_to_placement_aggregate",
        default=False,
        help="Keep a project to the hosts of aggregates whose metadata name it under filter_tenant_id...",
    ),
    cfg.BoolOpt(
        "placement_aggregate_required_for_tenants",
        default=False,
        help="With limit_tenants_to_placement_aggregate: a project that no aggregate names finds no host.",
    ),
    cfg.BoolOpt(
        "query_placement_for_image_type_support",
        default=False,
        help="Ask only for hosts that say they support the image's disk format.",
    ),
    cfg.BoolOpt(
        "enable_isolated_aggregate_filtering",
        default=False,
        help="Keep hosts of aggregates that demand traits free of servers that do not ask for those traits.",
    ),
    cfg.BoolOpt(
        "image_metadata_prefilter",
        default=False,
        help="Turn the image's wishes for buses and device models into traits that hosts must have.",
    ),
    cfg.BoolOpt(
        "query_placement_for_routed_network_aggregates",
        default=False,
        help="Ask only for hosts that reach the segments of the requested routed networks.",
    ),
]
