"""[filter_scheduler]: filters, weighers and what they read."""

from __future__ import annotations

from oslo_config import cfg

GROUP: str | None = "filter_scheduler"


ARCHITECTURES = [
    "alpha",
    "armv6",
    "armv7l",
    "armv7b",
    "aarch64",
    "cris",
    "i686",
    "ia64",
    "lm32",
    "m68k",
    "microblaze",
    "microblazeel",
    "mips",
    "mipsel",
    "mips64",
    "mips64el",
    "openrisc",
    "parisc",
    "parisc64",
    "ppc",
    "ppcle",
    "ppc64",
    "ppc64le",
    "ppcemb",
    "s390",
    "s390x",
    "sh4",
    "sh4eb",
    "sparc",
    "sparc64",
    "unicore32",
    "x86_64",
    "xtensa",
    "xtensaeb",
]
"""Names that an image's hw_architecture can have."""


def _multiplier(name: str, default: float, what: str, least: float | None = None) -> cfg.Opt:
    return cfg.FloatOpt(
        name, default=default, min=least, help=f"Weight of {what}. An aggregate's metadata can override it."
    )


OPTIONS: list[cfg.Opt] = [
    cfg.MultiStrOpt(
        "available_filters",
        default=["nova.scheduler.filters.all_filters"],
        help="Filters that enabled_filters may name: all that come with the scheduler, or single classes by full name.",
    ),
    cfg.ListOpt(
        "enabled_filters",
        default=[
            "ComputeFilter",
            "ComputeCapabilitiesFilter",
            "ImagePropertiesFilter",
            "ServerGroupAntiAffinityFilter",
            "ServerGroupAffinityFilter",
        ],
        help="Filters that a host must pass, asked in this order.",
    ),
    cfg.ListOpt(
        "weight_classes",
        default=["nova.scheduler.weights.all_weighers"],
        help="Weighers to use: all that come with the scheduler, or single classes by full name.",
    ),
    cfg.IntOpt(
        "host_subset_size",
        default=1,
        min=1,
        help="The chosen host is a random one of this many best.",
    ),
    cfg.BoolOpt(
        "shuffle_best_same_weighed_hosts",
        default=False,
        help="Put hosts that share the best weight into random order.",
    ),
    cfg.BoolOpt(
        "track_instance_changes",
        default=True,
        help="Believe what compute hosts report of their servers, besides what the databases say.",
    ),
    cfg.IntOpt(
        "max_io_ops_per_host",
        default=8,
        min=0,
        help="IoOpsFilter: servers that may be building, resizing, snapshotting or migrating on a host at once.",
    ),
    cfg.IntOpt(
        "max_instances_per_host",
        default=50,
        min=1,
        help="NumInstancesFilter: servers that may be on a host.",
    ),
    cfg.ListOpt("isolated_images", default=[], help="IsolatedHostsFilter: ids of images for isolated hosts only."),
    cfg.ListOpt("isolated_hosts", default=[], help="IsolatedHostsFilter: hosts for isolated images."),
    cfg.BoolOpt(
        "restrict_isolated_hosts_to_isolated_images",
        default=True,
        help="IsolatedHostsFilter: isolated hosts take no other images.",
    ),
    cfg.StrOpt(
        "image_properties_default_architecture",
        choices=ARCHITECTURES,
        help="ImagePropertiesFilter: the architecture of images that name none.",
    ),
    cfg.StrOpt(
        "aggregate_image_properties_isolation_namespace",
        deprecated_for_removal=True,
        deprecated_since="33.0.0",
        deprecated_reason="Isolated aggregates by traits do the same.",
        help="AggregateImagePropertiesIsolation: look only at metadata keys that begin with this name.",
    ),
    cfg.StrOpt(
        "aggregate_image_properties_isolation_separator",
        default=".",
        deprecated_for_removal=True,
        deprecated_since="33.0.0",
        deprecated_reason="Isolated aggregates by traits do the same.",
        help="AggregateImagePropertiesIsolation: what stands between that name and the rest of the key.",
    ),
    cfg.ListOpt(
        "image_props_weight_setting",
        default=[],
        help="ImagePropertiesWeigher: property=weight pairs; without any, every shared property counts 1.",
    ),
    _multiplier("ram_weight_multiplier", 1.0, "free memory; negative stacks servers"),
    _multiplier("cpu_weight_multiplier", 1.0, "free virtual CPUs; negative stacks servers"),
    _multiplier("disk_weight_multiplier", 1.0, "free disk; negative stacks servers"),
    _multiplier("hypervisor_version_weight_multiplier", 1.0, "a newer hypervisor"),
    _multiplier("num_instances_weight_multiplier", 0.0, "the number of servers; negative spreads them"),
    _multiplier("io_ops_weight_multiplier", -1.0, "operations going on; negative prefers quiet hosts"),
    _multiplier("image_props_weight_multiplier", 0.0, "servers with like image properties; 0 turns it off"),
    _multiplier("pci_weight_multiplier", 1.0, "few free PCI devices, so that hosts with many stay free", least=0.0),
    _multiplier("soft_affinity_weight_multiplier", 1.0, "members of the server's soft-affinity group", least=0.0),
    _multiplier(
        "soft_anti_affinity_weight_multiplier", 1.0, "the absence of members of its soft-anti-affinity group", least=0.0
    ),
    _multiplier("build_failure_weight_multiplier", 1000000.0, "recent failed builds, which count against a host"),
    _multiplier("cross_cell_move_weight_multiplier", 1000000.0, "staying in the cell when a move may leave it"),
]
