"""Options of the image cache on compute hosts."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "image_cache"

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "subdirectory_name",
        default="_base",
        deprecated_name="image_cache_subdirectory_name",
        deprecated_group="DEFAULT",
        help="Directory of cached images below instances_path; it must be a relative name.",
    ),
]
