"""Write the compact copy of the contract: `./run python -m tests.contract.facts.pack FOLDER`.

FOLDER holds a JSON document per kind and, of the samples, a folder per kind with a file per document.
"""

from __future__ import annotations

import json
import lzma
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

from tests.contract.facts import FOLDER

SAMPLES = ("api_samples", "notification_samples")


def documents(source: pathlib.Path) -> Iterator[tuple[str, Any]]:
    """Each kind with its document. A sample that is no JSON (templates with placeholders) is left out."""
    for path in sorted(source.glob("*.json")):
        yield path.stem, json.loads(path.read_text())
    for kind in SAMPLES:
        yield kind, dict(_samples(source / kind))


def _samples(folder: pathlib.Path) -> Iterator[tuple[str, Any]]:
    for path in sorted(folder.rglob("*.json")):
        try:
            yield str(path.relative_to(folder)), json.loads(path.read_text())
        except ValueError:
            continue


def main(source: pathlib.Path) -> None:
    for kind, document in documents(source):
        text = json.dumps(document, sort_keys=True, separators=(",", ":"))
        (FOLDER / f"{kind}.json.xz").write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
