"""Run several commands of one command-line program and pay for its imports once.

    python run_each.py MODULE:FUNCTION PROGRAM ARGUMENT... -- COMMAND... [-- COMMAND...]...

Every command runs in a fork of its own, after the arguments that all share; the first that fails ends it.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any


def split(words: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == "--":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def forked(main: Callable[[], Any]) -> int:
    """Exit code of `main`, run in a child."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        code = main() or 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  the child must not return into the parent's code
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run() -> int:
    entry, *words = sys.argv[1:]
    shared, *commands = split(words)
    module, function = entry.split(":")
    main = getattr(importlib.import_module(module), function)
    for command in commands:
        print("$", " ".join([*shared, *command]), flush=True)
        sys.argv = [*shared, *command]
        if code := forked(main):
            return code
    return 0


if __name__ == "__main__":
    sys.exit(run())
