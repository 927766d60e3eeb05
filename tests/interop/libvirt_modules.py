"""The peer's environment has no libvirt module: it gets ours."""

from __future__ import annotations

from pathlib import Path

import libvirt


def libvirt_for_others(folder: Path) -> Path:
    """Our environment's libvirt module, for the path of an environment that has none."""
    folder.mkdir(parents=True, exist_ok=True)
    for module in Path(libvirt.__file__).parent.glob("libvirt*"):
        link = folder / module.name
        if module.suffix in (".py", ".so") and not link.exists():
            link.symlink_to(module)
    return folder
