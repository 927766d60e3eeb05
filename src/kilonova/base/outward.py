"""Words of tools and libraries, made fit for users: they name files of the host, which are nobody's business."""

from __future__ import annotations

import re

SOMETHING = "(a file of the host)"

_PATH = re.compile(r"(?<![\w./~-])(?:file:)?~?/(?!dev/)[^\s'\"`<>|;,:()\[\]{}]*\w[^\s'\"`<>|;,:()\[\]{}]*")
"""An absolute path, from where one can begin. Names of devices stay: users see those of their disks."""


def without_paths(text: str) -> str:
    """The text with every path of a file replaced by words that say only that."""
    return _PATH.sub(SOMETHING, text)
