"""Options of the compute group that virtualization drivers obey."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "compute"

OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt(
        "max_disk_devices_to_attach",
        default=-1,
        min=-1,
        help="Most disks of one guest; -1 leaves it to the hypervisor. IDE always takes four.",
    ),
    cfg.ListOpt(
        "vmdk_allowed_types",
        default=["streamOptimized", "monolithicSparse"],
        help="VMDK create types that are accepted; others can refer to files outside of the image.",
    ),
]
