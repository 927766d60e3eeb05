"""Which configuration files an application under a foreign WSGI server reads: it has no command line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_DIRECTORY = "/etc/nova"
_FILE = "nova.conf"


def arguments(environment: Mapping[str, str] | None = None) -> list[str]:
    """As arguments: the files `OS_NOVA_CONFIG_FILES` (separated by semicolons, default nova.conf) in
    `OS_NOVA_CONFIG_DIR` (default /etc/nova). Files that are not INI (api-paste.ini is none of ours) are left out."""
    found = os.environ if environment is None else environment
    directory = Path(found.get("OS_NOVA_CONFIG_DIR", _DIRECTORY).strip())
    names = [name for name in found.get("OS_NOVA_CONFIG_FILES", "").split(";") if name] or [_FILE]
    paths = [directory / name for name in names if not name.endswith("-paste.ini")]
    return [f"--config-file={path}" for path in paths if path.exists()]
