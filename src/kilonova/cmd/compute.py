"""nova-compute: the agent of a host."""

import sys
from collections.abc import Sequence

from kilonova.base import starting


def main(argv: Sequence[str] | None = None) -> int:
    with starting.undisturbed():
        from kilonova.cmd import assembly, checks, process

        parts = assembly.Parts(process.configure("nova-compute", argv, checks.COMPUTE))
    return process.serve(parts, lambda: assembly.computes(parts))


if __name__ == "__main__":
    sys.exit(main())
