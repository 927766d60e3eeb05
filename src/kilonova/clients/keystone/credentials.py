"""What is wrong with the credentials in configuration groups, as far as nobody has to be asked for it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from importlib import metadata
from typing import Final

from oslo_config import cfg

from kilonova.conf import unknown

VALIDATING: Final = "keystone_authtoken"
"""The group whose credentials validate the tokens of users."""

_WHOLE: Final = {"none": set[str](), **{kind: {"auth_url"} for kind in ("password", "v2password", "v3password")}}
"""What the usual plug-ins need; loading one, to ask it, takes a tenth of a service's start."""


def wrong(conf: cfg.ConfigOpts, groups: Iterable[str], needed: Iterable[str] = ()) -> Iterator[str]:
    """A line at most for each group. In `needed` ones there must be some."""
    written = {(group, name) for _, group, name in unknown.written(conf)}
    for group in groups:
        section = conf[group].auth_section or group
        try:
            kind = conf[section].auth_type
        except cfg.NoSuchOptError:
            yield f"[{group}] auth_section: there are no credentials in [{section}]"
            continue
        if not kind:
            if group in needed:
                yield f"[{section}] auth_type is not set: without credentials of its own the service cannot work"
        elif kind not in _WHOLE or not {(section, name) for name in _WHOLE[kind]} <= written:
            yield from _refused(conf, group, section, kind)


def _refused(conf: cfg.ConfigOpts, group: str, section: str, kind: str) -> Iterator[str]:
    known = metadata.entry_points(group="keystoneauth1.plugin").names
    if kind not in known:
        yield f"[{section}] auth_type: there is no {kind}; known are {', '.join(sorted(known))}"
        return
    from keystoneauth1 import loading

    try:
        loading.load_auth_from_conf_options(conf, group)
    except Exception as exc:  # noqa: BLE001 - the plug-in is anybody's
        yield f"[{section}] auth_type {kind}: {exc}"


def validating(conf: cfg.ConfigOpts) -> Iterator[str]:
    """The same of the credentials that validate tokens, which have to be there."""
    declare_validating(conf)
    return wrong(conf, (VALIDATING,), (VALIDATING,))


def declare_validating(conf: cfg.ConfigOpts) -> None:
    """The options of those; keystonemiddleware declares them itself when it is made."""
    from keystoneauth1 import loading

    # The section that they name may be one of ours, and has them already.
    with contextlib.suppress(cfg.DuplicateOptError):
        loading.register_auth_conf_options(conf, VALIDATING)
