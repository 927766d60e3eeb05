"""What the commands of `kilonova` that work on the databases have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kilonova.db.cells import Cells


def on_cells(prog: str, arguments: argparse.Namespace) -> int:
    """`arguments.run(cells, arguments)` on the databases that the files `arguments.config_file` name; its exit code."""
    from kilonova import conf as configuration
    from kilonova.db.cells import Cells

    files = [word for name in arguments.config_file or () for word in ("--config-file", name)]
    cells = Cells(configuration.load(files, prog), patient=True)
    try:
        run: Callable[[Cells, argparse.Namespace], int] = arguments.run
        return run(cells, arguments)
    finally:
        cells.dispose()
