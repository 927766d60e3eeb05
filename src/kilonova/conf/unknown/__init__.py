"""What stands in configuration files and nothing obeys: misspelt names, and options of Nova's that are not obeyed yet.

Names only are looked at and told, never values: some are passwords. Why a list of Nova's names is shipped:
docs/decisions/0014-unknown-options.md.
"""

from __future__ import annotations

import difflib
import functools
import importlib.resources
import itertools
import logging
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec
from oslo_config import cfg

from kilonova import conf as configuration

LOG = logging.getLogger(__name__)

Names: TypeAlias = Mapping[str, frozenset[str]]
"""Names of options, with underscores, by group."""

DEFAULT = "DEFAULT"

NOVA = "nova.txt"
"""Every option of Nova 34.0.0, former names included."""

LIBRARIES = "libraries.txt"
"""Options of libraries, which register them when they are first used."""

CREDENTIALS = "credentials.txt"
"""What the usual plug-ins for credentials read, by plug-in: loading one of them takes a tenth of a service's start."""

ANY = "*"
"""Stands there for all options of a group."""

NOVAS_PREFIXES = ("mdev_", "vgpu_")
"""Groups that Nova has one of for each type of device."""


class Unknown(msgspec.Struct, frozen=True):
    """An option that stands in a file and that nothing obeys. `novas`: Nova has it."""

    group: str
    name: str
    file: str
    novas: bool
    nearest: str | None = None

    def __str__(self) -> str:
        if self.novas:
            return f"{self.group}.{self.name} ({self.file}) is an option of Nova's that this release does not obey yet"
        hint = f"; did you mean {self.nearest}?" if self.nearest else ""
        return f"{self.group}.{self.name} ({self.file}) is no option{hint}"


def warn(conf: cfg.ConfigOpts) -> None:
    """A line in the log for each unknown option in the files that the configuration was read from."""
    for each in find(conf):
        LOG.warning("%s", each)


def find(conf: cfg.ConfigOpts) -> list[Unknown]:
    """The unknown options of the files, in their order."""
    obeyed = _obeyed(conf)
    found = []
    for file, group, name in written(conf):
        if name in obeyed.get(group, ()) or not {name, ANY}.isdisjoint(listed(LIBRARIES).get(group, ())):
            continue
        novas = name in listed(NOVA).get(group, ()) or group.startswith(NOVAS_PREFIXES)
        nearest = None if novas else _nearest(group, name, obeyed)
        found.append(Unknown(group, name, file, novas, nearest))
    return found


@functools.cache
def listed(file: str) -> Names:
    """The names of one of our lists."""
    text = (importlib.resources.files(__name__) / file).read_text()
    names: dict[str, set[str]] = {}
    for line in text.split():
        if line.startswith("["):
            of_group = names.setdefault(line.strip("[]"), set())
        else:
            of_group.add(line)
    return {group: frozenset(found) for group, found in names.items()}


def written(conf: cfg.ConfigOpts) -> Iterator[tuple[str, str, str]]:
    """(file, group, name) of each option that is set, as oslo.config reads them."""
    folders = sorted(itertools.chain.from_iterable(Path(one).glob("*.conf") for one in conf.config_dir or ()))
    for path in [*map(Path, conf.config_file or ()), *folders]:
        sections: dict[str, dict[str, list[str]]] = {}
        cfg.ConfigParser(str(path), sections).parse()
        for group, options in sections.items():
            for name in options:
                yield path.name, group if group == DEFAULT else group.lower(), name.replace("-", "_")


def _obeyed(conf: cfg.ConfigOpts) -> Names:
    names: dict[str, set[str]] = {}
    for module in configuration.modules():
        for option in module.OPTIONS:
            _add(names, module.GROUP or DEFAULT, option)
    for group in [group for group, found in names.items() if "auth_type" in found]:
        names[group].update(_credentials(conf[group].auth_type))
    # Those of oslo.log, and of whatever else has registered some by now.
    names[DEFAULT] |= set(conf) - names.keys()
    return {group: frozenset(found) for group, found in names.items()}


def _add(names: dict[str, set[str]], group: str, option: cfg.Opt) -> None:
    """The option under its present and former names."""
    names.setdefault(group, set()).add(option.dest)
    for former in option.deprecated_opts:
        name = (former.name or option.dest).replace("-", "_")
        names.setdefault(former.group or group, set()).add(name)


def _credentials(auth_type: str | None) -> Collection[str]:
    """What the plug-in of a group with credentials reads there; it registers its options when it is loaded."""
    if not auth_type:
        return ()
    return listed(CREDENTIALS).get(auth_type) or plugin_names(auth_type)


def plugin_names(auth_type: str) -> Collection[str]:
    """The names, present and former, of the options of a plug-in, which is loaded for that; none if there is none."""
    from keystoneauth1 import exceptions, loading

    names: dict[str, set[str]] = {auth_type: set()}
    try:
        for option in loading.get_auth_plugin_conf_options(auth_type):
            _add(names, auth_type, option)
    except exceptions.NoMatchingPlugin:
        # Whoever needs the credentials says it.
        return ()
    return names[auth_type]


def _nearest(group: str, name: str, obeyed: Names) -> str | None:
    """The known option that was probably meant: one like it in the same group; of the same name in a group like it, or
    in the only group that has one.
    """
    novas = listed(NOVA)
    known = {g: obeyed.get(g, frozenset()) | novas.get(g, frozenset()) for g in {*obeyed, *novas}}
    if close := difflib.get_close_matches(name, known.get(group, ()), n=1, cutoff=0.75):
        return f"{group}.{close[0]}"
    elsewhere = [g for g in known if name in known[g]]
    near = elsewhere if len(elsewhere) == 1 else difflib.get_close_matches(group, elsewhere, n=1)
    return f"{near[0]}.{name}" if near else None
