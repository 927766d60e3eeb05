"""What the operator tells all servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from oslo_config import cfg

from kilonova.metadata.documents import VendorData

STATIC = "StaticJSON"


class UnsupportedProvider(Exception):
    """The configuration names a source of vendor data that is not built."""


def load(conf: cfg.ConfigOpts) -> VendorData:
    """Read the static file. Raises UnsupportedProvider, OSError, ValueError: all of them the operator's to mend."""
    unknown = [each for each in conf.api.vendordata_providers if each != STATIC]
    if unknown:
        raise UnsupportedProvider(f"[api] vendordata_providers: {', '.join(unknown)} is not supported, only {STATIC}")
    if STATIC not in conf.api.vendordata_providers:
        return VendorData()
    path = conf.api.vendordata_jsonfile_path
    static: Any = json.loads(Path(path).read_text()) if path else {}
    return VendorData(static)
