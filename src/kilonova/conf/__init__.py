"""Options, one file per group, declared with the code that obeys them.

Each module of this package has `GROUP` (None is [DEFAULT]) and `OPTIONS`; several modules may name the same group.
`unknown` looks for what is none of them.
There is no global configuration: `new()` makes one and whoever needs it is given it.
"""

from __future__ import annotations

import copy
import importlib
import pathlib
import pkgutil
import socket
from collections.abc import Iterator, Sequence
from types import ModuleType

from oslo_config import cfg

from kilonova import __version__

PROJECT = "nova"
"""Whose configuration files are looked for: /etc/nova/nova.conf and its kin."""

RELEASE = "34.0.0"
"""Of Nova, whose commands and files these are."""

VERSION = f"{RELEASE} (kilonova {__version__})"
"""What the programs answer to --version: installers read Nova's release there, and leave steps out for an old one."""


def modules() -> Iterator[ModuleType]:
    """All option modules, by name; a leading underscore marks what several of them share."""
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        if info.name.startswith("_") or info.ispkg:
            continue
        yield importlib.import_module(f"{__name__}.{info.name}")


def new() -> cfg.ConfigOpts:
    """A configuration with every option of ours (and of oslo.log) registered, all at their defaults."""
    from kilonova.base import log

    conf = cfg.ConfigOpts()
    log.register(conf)
    for module in modules():
        conf.register_opts(module.OPTIONS, group=module.GROUP)
    conf.set_default("host", socket.gethostname())
    conf.set_default("my_ip", _source_address())
    conf.set_default("pybasedir", str(pathlib.Path(__file__).resolve().parents[2]))
    return conf


def load(argv: Sequence[str] = (), prog: str | None = None, conf: cfg.ConfigOpts | None = None) -> cfg.ConfigOpts:
    """Parse a command line (without the program's name; `--config-file`, `--config-dir` ...) and the files it names.

    Without such an argument the usual places of nova.conf are read. A caller with arguments of its own passes a `conf`
    on which they are registered. Raises SystemExit (usage), cfg.ConfigFilesNotFoundError, cfg.ConfigFileParseError.
    """
    conf = conf or new()
    conf(list(argv), project=PROJECT, prog=prog, version=VERSION)
    return conf


def list_options() -> list[tuple[str | None, list[cfg.Opt]]]:
    """All options, copied, since whoever lists them may change them. The entry point of oslo-config-generator.

    Those of the usual authentication plug-ins are among them, which are registered when a plug-in is loaded.
    """
    from kilonova.conf import _keystoneauth

    listed: list[tuple[str | None, list[cfg.Opt]]] = []
    for module in modules():
        listed.append((module.GROUP, copy.deepcopy(module.OPTIONS)))
        if any(option.dest == "auth_type" for option in module.OPTIONS):
            listed.append((module.GROUP, _keystoneauth.credentials()))
    return listed


def _source_address() -> str:
    """The address from which this machine would speak to the world; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
