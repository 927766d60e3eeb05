"""nova-metadata-api: the metadata service behind the built-in server."""

import sys
from collections.abc import Sequence

from kilonova.base import starting


def main(argv: Sequence[str] | None = None) -> int:
    with starting.undisturbed():
        from kilonova.cmd import assembly, checks, process

        parts = assembly.Parts(process.configure("nova-metadata-api", argv, checks.METADATA))
    return process.serve(parts, lambda: [assembly.metadata_server(parts)])


if __name__ == "__main__":
    sys.exit(main())
