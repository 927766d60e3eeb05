"""`nova-policy policy check`: which rules pass for a user, under the operator's policy file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from oslo_config import cfg

from kilonova.cmd.command import Program
from kilonova.cmd.manage.actions import Action, Refused, argument, switch
from kilonova.cmd.manage.session import Session
from kilonova.contract import policies
from kilonova.contract.context import RequestContext
from kilonova.db.cell import instances
from kilonova.db.cells import Cells
from kilonova.db.query import Row

PASSED, FAILED = 0, 1
TARGETS = ("project_id", "user_id", "quota_class", "availability_zone", "instance_id")


def check(session: Session, api_name: str | None, target: list[str] | None, json: bool) -> int:
    about = _target(session, target or ())
    passing = [name for name in passing_rules(session.conf, about) if (api_name or "") in name]
    if json:
        session.table(("rule",), [(name,) for name in passing], as_json=True)
    elif passing:
        session.say("\n".join(passing))
    else:
        session.say("No rule of that name passes.")
    return PASSED if passing else FAILED


def passing_rules(conf: cfg.ConfigOpts, target: Mapping[str, Any] | None) -> list[str]:
    """The rules that the user of the options may use on the target (None: on what is his own)."""
    from kilonova.wire.http.policy import Enforcer

    enforcer = Enforcer(conf, policies.RULES)
    enforcer.load()
    user = RequestContext(user_id=conf.os_user_id, project_id=conf.os_tenant_id, roles=conf.os_roles or [])
    user.is_admin = enforcer.allows("context_is_admin", None, user)
    return [rule.name for rule in policies.RULES if enforcer.allows(rule.name, target, user)]


def _target(session: Session, words: Iterable[str]) -> dict[str, Any] | None:
    """From `key=value` words. Raises Refused."""
    about: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if key not in TARGETS or not equals:
            raise Refused(FAILED, f"A target is KEY=VALUE with a key of {', '.join(TARGETS)}, not {word}.")
        about[key] = value
    if not about.get("instance_id"):
        return about or None
    found = _server(session.cells, about["instance_id"])
    if found is None:
        raise Refused(FAILED, f"There is no server {about['instance_id']}.")
    return {"user_id": found["user_id"], "project_id": found["project_id"]}


def _server(cells: Cells, uuid: str) -> Row | None:
    """The server, wherever it is; a service that knows its own cell only looks there."""
    if cells.has_api:
        cell = cells.for_instance(uuid)
        if cell is None:
            return None
        database = cell.database
    else:
        database = cells.own
    return database.query(instances.instance_get, uuid, columns=("user_id", "project_id"))


CHECK = Action(
    "policy",
    "check",
    "Show the policy rules that pass for a user, who is given by --os-roles, --os-user-id and --os-tenant-id or by "
    "OS_ROLES, OS_USER_ID and OS_TENANT_ID in the environment.",
    check,
    (
        argument("--api-name", metavar="<name>", help="Only rules whose name has this in it."),
        argument(
            "--target",
            nargs="+",
            metavar="<target>",
            help=f"What the rules are asked about: KEY=VALUE with {', '.join(TARGETS)}; instance_id stands for the "
            "owner of that server. Default: the user's own.",
        ),
        switch("--json", help="As JSON."),
    ),
    {0: "these rules pass", 1: "no rule passes, or something failed"},
    unforeseen=FAILED,
)


def _user_options() -> list[cfg.Opt]:
    """Who is asked about; the environment is read now."""
    env = os.environ
    return [
        cfg.ListOpt("os-roles", metavar="<auth-roles>", default=env.get("OS_ROLES"), help="Default: OS_ROLES."),
        cfg.StrOpt("os-user-id", metavar="<auth-user-id>", default=env.get("OS_USER_ID"), help="Default: OS_USER_ID."),
        cfg.StrOpt(
            "os-tenant-id", metavar="<auth-tenant-id>", default=env.get("OS_TENANT_ID"), help="Default: OS_TENANT_ID."
        ),
    ]


def main(argv: list[str] | None = None) -> int:
    """The program."""
    return _PROGRAM.main(argv, _user_options())


def _run(conf: cfg.ConfigOpts) -> int:
    return int(conf.category.action.call(Session(conf), conf.category))


def _declare(subparsers: Any) -> None:
    category = subparsers.add_parser(CHECK.category, help="policy rules")
    CHECK.add_parser(category.add_subparsers(dest="action_name", required=True))


_PROGRAM = Program(
    "nova-policy", _declare, lambda: {CHECK.category: [CHECK.name]}, _run, lambda _conf: CHECK.unforeseen
)
