"""What Nova 34.0.0 is, as data: its routes, schemas, objects, messages, tables, options, policies, states and samples.

One compressed JSON document per kind, as `pack.py` writes it. `./run python -m tests.contract.facts KIND` prints one.
"""

from __future__ import annotations

import functools
import json
import lzma
import pathlib
from typing import Any

FOLDER = pathlib.Path(__file__).parent


@functools.cache
def load(kind: str) -> Any:
    """The document of a kind, for example `rest_routes`. It is the same object for all who ask: nobody changes it."""
    return json.loads(lzma.decompress((FOLDER / f"{kind}.json.xz").read_bytes()))


def kinds() -> list[str]:
    return sorted(path.name.removesuffix(".json.xz") for path in FOLDER.glob("*.json.xz"))


def samples(kind: str) -> dict[str, Any]:
    """Nova's sample documents by path: `api_samples` or `notification_samples`."""
    found: dict[str, Any] = load(kind)
    return found
