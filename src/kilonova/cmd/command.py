"""What the operators' programs have in common: a command line of categories and actions, one line for what fails."""

from __future__ import annotations

import dataclasses
import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from oslo_config import cfg
from oslo_log.log import LogConfigError

from kilonova import conf as configuration
from kilonova.base import log
from kilonova.cmd import completion, extras
from kilonova.cmd.one_line import first as one_line
from kilonova.conf import values

LOG = logging.getLogger(__name__)

UNUSABLE, INTERRUPTED = 1, 130
"""Exit codes: the configuration cannot be read; ^C."""


@dataclasses.dataclass(frozen=True)
class Program:
    """`name CATEGORY ACTION`.

    `declare` adds the categories to argparse's sub-parsers, `words` gives the actions by category. `run` gets the
    configuration, whose option `category` is the parsed command line, and returns the exit code; `unforeseen` has the
    code for an exception of it.
    """

    name: str
    declare: Callable[[Any], None]
    words: Callable[[], Mapping[str, Iterable[str]]]
    run: Callable[[cfg.ConfigOpts], int]
    unforeseen: Callable[[cfg.ConfigOpts], int]

    def main(self, argv: list[str] | None, options: Sequence[cfg.Opt] = ()) -> int:
        """Run the command line with more `options` on it; its exit code."""
        try:
            conf = self._configured(sys.argv[1:] if argv is None else argv, options)
        except (cfg.Error, LogConfigError, OSError, ValueError) as exc:
            _complain(exc)
            return UNUSABLE
        if wrong := list(values.wrong(conf)):
            print("\n".join(f"ERROR: {line}" for line in wrong), file=sys.stderr)
            return UNUSABLE
        parsed = conf.category
        if parsed.name == "version":
            print(configuration.VERSION)
            return 0
        if parsed.name == completion.NAME:
            return completion.show(self.words(), parsed.query_category)
        try:
            return int(self.run(conf))
        except KeyboardInterrupt:
            print("Interrupted.", file=sys.stderr)
            return INTERRUPTED
        except Exception as exc:
            # The operator gets one line, and the traceback with --debug.
            _complain(exc)
            LOG.debug("%s failed", self.name, exc_info=True)
            return self.unforeseen(conf)

    def _configured(self, argv: list[str], options: Sequence[cfg.Opt]) -> cfg.ConfigOpts:
        conf = configuration.new()
        # oslo.messaging owns this option; here there is no bus, only its URL.
        conf.register_opt(cfg.StrOpt("transport_url", default="rabbit://", secret=True))
        conf.register_cli_opts(options)
        # Scripts look for this title in --help, and for the categories below it.
        conf.register_cli_opt(cfg.SubCommandOpt("category", title="Command categories", handler=self._declare))
        configuration.load(argv, self.name, conf)
        log.setup(conf, command=True)
        return conf

    def _declare(self, subparsers: Any) -> None:
        self.declare(subparsers)
        subparsers.add_parser("version", help="the version of this program")
        completion.declare(subparsers)


def _complain(exc: BaseException) -> None:
    lacking = extras.explained(exc) if isinstance(exc, ModuleNotFoundError) else None
    print(f"ERROR: {lacking or f'{type(exc).__name__}: {one_line(exc)}'}", file=sys.stderr)
