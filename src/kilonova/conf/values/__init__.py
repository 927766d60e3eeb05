"""Which values of the configuration are none for their options, all of them at once.

oslo.config says so only when a value is first read: one at a time, minutes after the start or never.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from oslo_config import cfg

from kilonova import conf as configuration

_REASON = re.compile(r"is not valid: (.*)", re.DOTALL)
_FILE = re.compile(r"detail='([^']*)'")


def wrong(conf: cfg.ConfigOpts) -> Iterator[str]:
    """One line for each wrong value; the values themselves are told only of options that hold no secret."""
    for module in configuration.modules():
        yield from of(conf, module.GROUP, module.OPTIONS)


def of(conf: cfg.ConfigOpts, group: str | None, options: Sequence[cfg.Opt]) -> Iterator[str]:
    """The same of these options, which are registered."""
    for option in options:
        try:
            _read(conf, group, option.dest)
        except (cfg.Error, ValueError) as exc:
            yield f"[{group or 'DEFAULT'}] {option.name}: {_reason(exc, option)}"


def _read(conf: cfg.ConfigOpts, group: str | None, name: str) -> Any:
    return (conf if group is None else conf[group])[name]


def _reason(exc: Exception, option: cfg.Opt) -> str:
    text = str(exc)
    said, file = _REASON.search(text), _FILE.search(text)
    if isinstance(exc, cfg.NoSuchOptError | cfg.TemplateSubstitutionError):
        return f"the value refers to an option that there is not ({text})"
    reason = said[1] if said and not option.secret else "the value is not of the option's type"
    return f"{reason} ({file[1]})" if file else reason
