"""Options of the metadata service and of config drives."""

from __future__ import annotations

from oslo_config import cfg, types

GROUP = "api"

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "config_drive_skip_versions",
        default="1.0 2007-01-19 2007-03-01 2007-08-29 2007-10-10 2007-12-15 2008-02-01 2008-09-01",
        help="EC2 versions left out of config drives, separated by spaces.",
    ),
    cfg.ListOpt(
        "vendordata_providers",
        item_type=types.String(choices=["StaticJSON", "DynamicJSON"]),
        default=["StaticJSON"],
        help="Where vendor data come from. StaticJSON is the file vendordata_jsonfile_path; no other is supported.",
    ),
    cfg.StrOpt("vendordata_jsonfile_path", help="JSON file that every server finds as vendor_data.json."),
    cfg.IntOpt(
        "metadata_cache_expiration",
        default=15,
        min=0,
        help="Seconds the metadata service keeps what it found of a server; 0 asks every time.",
    ),
    cfg.BoolOpt(
        "local_metadata_per_cell",
        default=False,
        help="This metadata service serves the servers of its own cell only and needs no API database.",
    ),
    cfg.StrOpt(
        "dhcp_domain",
        default="novalocal",
        help="Domain that is appended to host names in metadata; empty for none.",
    ),
]
