"""nova-scheduler: chooses hosts."""

import sys
from collections.abc import Sequence

from kilonova.cmd import assembly, process


def main(argv: Sequence[str] | None = None) -> int:
    parts = assembly.Parts(process.configure("nova-scheduler", argv))
    return process.run(parts.conf, [assembly.scheduler(parts)], [parts.close], [parts.reload])


if __name__ == "__main__":
    sys.exit(main())
