"""nova-api: the compute API behind the built-in server."""

import sys
from collections.abc import Sequence

from kilonova.cmd import assembly, process


def main(argv: Sequence[str] | None = None) -> int:
    parts = assembly.Parts(process.configure("nova-api", argv))
    return process.run(parts.conf, [assembly.api_server(parts)], [parts.close], [parts.reload])


if __name__ == "__main__":
    sys.exit(main())
