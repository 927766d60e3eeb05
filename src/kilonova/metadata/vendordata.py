"""What the operator tells all servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from oslo_config import cfg

from kilonova.contract import exceptions
from kilonova.metadata.documents import VendorData

STATIC = "StaticJSON"


def load(conf: cfg.ConfigOpts) -> VendorData:
    """Read the static file. Raises InvalidConfiguration: the operator shall mend it before any guest asks."""
    unknown = [each for each in conf.api.vendordata_providers if each != STATIC]
    if unknown:
        raise exceptions.InvalidConfiguration(
            f"[api] vendordata_providers: {', '.join(unknown)} is not supported, only {STATIC}"
        )
    if STATIC not in conf.api.vendordata_providers:
        return VendorData()
    path = conf.api.vendordata_jsonfile_path
    return VendorData(_read(path) if path else {})


def _read(path: str) -> Any:
    try:
        return json.loads(Path(path).read_text())
    except (OSError, ValueError) as failure:
        raise exceptions.InvalidConfiguration(f"[api] vendordata_jsonfile_path {path}: {failure}") from failure
