"""What actions of nova-manage work with: the configuration, the databases, the terminal."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Any

from oslo_config import cfg

from kilonova.clients.bundle import Clients
from kilonova.db.cells import Cells


class Session:
    """One run of nova-manage."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.conf = conf

    @functools.cached_property
    def cells(self) -> Cells:
        """The databases."""
        return Cells(self.conf)

    @functools.cached_property
    def clients(self) -> Clients:
        """The other services, called with our own credentials."""
        return Clients.from_conf(self.conf)

    def say(self, text: object) -> None:
        """One line for the operator."""
        print(text, flush=True)

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
