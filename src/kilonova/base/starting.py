"""A start that the garbage collector does not disturb."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """For a process that loads its modules and makes what stays as long as it runs.

    The collector would walk all that again and again, in vain: a tenth of the time. What is there at the end is set
    aside, so that later passes do not walk it either.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
