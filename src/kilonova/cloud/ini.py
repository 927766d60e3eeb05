"""Writing oslo.config and uwsgi files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kilonova.cloud.site import write_atomically

Sections = Mapping[str, Mapping[str, Any]]


def render(sections: Sections) -> str:
    """INI text. A list becomes a repeated option, a bool `true` or `false`; None is left out."""
    lines: list[str] = []
    for name, options in sections.items():
        lines.append(f"[{name}]")
        for key, value in options.items():
            lines += [
                f"{key} = {plain(one)}" for one in (value if isinstance(value, list) else [value]) if one is not None
            ]
        lines.append("")
    return "\n".join(lines)


def plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def write(path: Path, sections: Sections) -> Path:
    return write_atomically(path, render(sections))
