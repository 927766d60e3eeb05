"""What oslo.policy's programs ask for by the entry points of the package: the rules, and an enforcer of the operator's.

`oslopolicy-sample-generator`, `oslopolicy-policy-generator`, `oslopolicy-list-redundant`, `oslopolicy-validator` and
`oslopolicy-policy-upgrade` with `--namespace nova` or `kilonova`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from oslo_config import cfg
from oslo_policy import policy

from kilonova import conf as configuration
from kilonova.contract import policies
from kilonova.wire.http.policy import Enforcer, defaults

_OURS = ("--config-file", "--config-dir")


def list_rules() -> list[policy.RuleDefault]:
    """The defaults of all rules."""
    return defaults(policies.RULES)


def get_enforcer() -> policy.Enforcer:
    """An enforcer of the files that the program's command line names, else of the usual nova.conf."""
    # These programs read the global configuration themselves; nothing of ours does.
    conf = cfg.CONF
    conf(arguments(sys.argv[1:]), project=configuration.PROJECT)
    return Enforcer(conf, policies.RULES).library


def arguments(words: Sequence[str]) -> list[str]:
    """What of a command line says where the configuration is; the rest is the program's own."""
    found: list[str] = []
    for place, word in enumerate(words):
        name, equals, _ = word.partition("=")
        if name in _OURS:
            found += [word] if equals else list(words[place : place + 2])
    return found
