"""nova-api: the compute API behind the built-in server."""

import sys
from collections.abc import Sequence

from kilonova.base import starting


def main(argv: Sequence[str] | None = None) -> int:
    with starting.undisturbed():
        from kilonova.cmd import assembly, process

        parts = assembly.Parts(process.configure("nova-api", argv))
        services = [assembly.api_server(parts)]
    return process.run(parts.conf, services, [parts.close], [parts.reload])


if __name__ == "__main__":
    sys.exit(main())
