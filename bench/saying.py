"""What the bench is doing, on standard error, with the seconds since it began."""

from __future__ import annotations

import sys
import time

BEGAN = time.monotonic()


def say(what: str) -> None:
    print(f"bench: {time.monotonic() - BEGAN:5.0f} s  {what}", file=sys.stderr, flush=True)
