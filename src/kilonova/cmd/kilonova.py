"""`kilonova serve` runs the whole service in one process, `kilonova cloud` a whole cloud on one machine.

`kilonova flow` shows what the conductor is doing.
"""

import importlib
import sys

from kilonova import __version__

COMMANDS = {
    "cloud": ("kilonova.cloud.cli", "a cloud on this machine: up, down, status, restart, logs"),
    "flow": ("kilonova.cmd.flow", "what the conductor does with a server, step by step: show, list, abandon, revive"),
    "tables": ("kilonova.cmd.tables", "our own tables beside Nova's: show, drop"),
    "serve": ("kilonova.cmd.serve", "API, metadata, scheduler, conductor and compute in one process"),
}
"""Name: (module whose `main(argv)` runs it, one line of help). Imported only when asked for."""


def usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items()]
    return "usage: kilonova COMMAND ... | --version\n\n" + "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] in ("-h", "--help"):
        print(usage())
        return 0 if words else 2
    if words[0] == "--version":
        print(f"kilonova {__version__}")
        return 0
    if words[0] not in COMMANDS:
        print(f"kilonova: there is no command {words[0]}\n\n{usage()}", file=sys.stderr)
        return 2
    module, _ = COMMANDS[words[0]]
    return int(importlib.import_module(module).main(words[1:]) or 0)


if __name__ == "__main__":
    sys.exit(main())
