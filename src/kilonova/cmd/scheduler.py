"""nova-scheduler: chooses hosts."""

import sys
from collections.abc import Sequence

from kilonova.base import starting


def main(argv: Sequence[str] | None = None) -> int:
    with starting.undisturbed():
        from kilonova.cmd import assembly, checks, process

        parts = assembly.Parts(process.configure("nova-scheduler", argv, checks.SCHEDULER))
    return process.serve(parts, lambda: [assembly.scheduler(parts)])


if __name__ == "__main__":
    sys.exit(main())
