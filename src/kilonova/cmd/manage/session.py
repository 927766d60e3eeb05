"""What actions of nova-manage work with: the configuration, the databases, the terminal."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from kilonova import conf as configuration
from kilonova.clients.bundle import Clients

if TYPE_CHECKING:
    from kilonova.db.cells import Cells
    from kilonova.wire.rpc.bus import Bus


class Session:
    """One run of nova-manage."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.conf = conf

    @functools.cached_property
    def cells(self) -> Cells:
        """The databases."""
        from kilonova.db.cells import Cells

        return Cells(self.conf, patient=True)

    @functools.cached_property
    def clients(self) -> Clients:
        """The other services, called with our own credentials."""
        return Clients.from_conf(self.conf)

    @functools.cached_property
    def bus(self) -> Bus:
        """The message bus; whoever asks for it closes it."""
        from kilonova.cmd.assembly import Parts

        # oslo.messaging declares the option that the command's own configuration has a stand-in for.
        files = [f"--config-file={path}" for path in self.conf.config_file or ()]
        folders = [f"--config-dir={path}" for path in self.conf.config_dir or ()]
        return Parts(configuration.load([*files, *folders], "nova-manage")).bus

    def say(self, text: object) -> None:
        """One line for the operator."""
        print(text, flush=True)

    def complain(self, text: object) -> None:
        """One line about what went wrong, apart from the output."""
        print(text, file=sys.stderr, flush=True)

    def properties(self, values: Mapping[str, Any]) -> None:
        """Names and values as a table, by name."""
        import prettytable

        drawn = prettytable.PrettyTable(["Property", "Value"], align="l", header_align="l")
        drawn.add_rows([[name, str(values[name])] for name in sorted(values)])
        self.say(drawn)

    def table(self, titles: Sequence[str], rows: Sequence[Sequence[Any]], *, as_json: bool = False) -> None:
        """A table as operators know it, or a JSON list of objects keyed by the titles."""
        if as_json:
            self.say(json.dumps([dict(zip(titles, row, strict=True)) for row in rows], indent=2))
            return
        import prettytable

        drawn = prettytable.PrettyTable(list(titles))
        for row in rows:
            drawn.add_row(list(row))
        self.say(drawn)
