"""nova-compute: the agent of a host."""

import sys
from collections.abc import Sequence

from kilonova.cmd import assembly, process


def main(argv: Sequence[str] | None = None) -> int:
    parts = assembly.Parts(process.configure("nova-compute", argv))
    return process.run(parts.conf, assembly.computes(parts), [parts.close], [parts.reload])


if __name__ == "__main__":
    sys.exit(main())
