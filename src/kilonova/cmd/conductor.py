"""nova-conductor: drives operations, serves the database to hosts, repairs."""

import sys
from collections.abc import Sequence

from kilonova.cmd import assembly, process


def main(argv: Sequence[str] | None = None) -> int:
    parts = assembly.Parts(process.configure("nova-conductor", argv))
    return process.run(parts.conf, assembly.conductor(parts), [parts.close], [parts.reload])


if __name__ == "__main__":
    sys.exit(main())
