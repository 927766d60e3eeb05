"""nova-conductor: drives operations, serves the database to hosts, repairs."""

import sys
from collections.abc import Sequence

from kilonova.base import starting


def main(argv: Sequence[str] | None = None) -> int:
    with starting.undisturbed():
        from kilonova.cmd import assembly, checks, process

        parts = assembly.Parts(process.configure("nova-conductor", argv, checks.CONDUCTOR))
    return process.serve(parts, lambda: assembly.conductor(parts))


if __name__ == "__main__":
    sys.exit(main())
