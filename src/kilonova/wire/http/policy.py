"""Policy enforcement: the rules of the contract under an operator's policy file (oslo.policy)."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from oslo_config import cfg
from oslo_policy import policy

from kilonova.base import clock
from kilonova.contract import exceptions
from kilonova.contract.context import RequestContext
from kilonova.contract.policies import Rule
from kilonova.wire.http.faults import forbidden

LOG = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 1.0
_MOST_DECISIONS: Final = 100_000


class Policy(Protocol):
    """Says whether a caller may."""

    def authorize(self, rule: str, target: Mapping[str, Any] | None, context: RequestContext) -> None: ...

    def allows(self, rule: str, target: Mapping[str, Any] | None, context: RequestContext) -> bool: ...


class IsAdmin(policy.Check):
    """``is_admin:True`` in older policy files: what the rule ``context_is_admin`` said of the caller."""

    def __call__(self, target: Any, creds: Mapping[str, Any], enforcer: Any, current_rule: Any = None) -> bool:
        return bool(creds.get("is_admin")) is (self.match.lower() == "true")


class Enforcer:
    """oslo.policy over ``rules``. The policy file is looked at once a second; decisions are kept until it changes.

    A decision depends on the rule, the target and the caller alone, so it is remembered by these, unless a rule asks
    another service (``http:`` checks).
    """

    def __init__(self, conf: cfg.ConfigOpts, rules: Iterable[Rule], now: Callable[[], float] = clock.monotonic) -> None:
        policy.register("is_admin", IsAdmin)
        self._enforcer = policy.Enforcer(conf)
        # Every default differs from the deprecated rule that it replaced; a line per rule at each start says nothing.
        self._enforcer.suppress_default_change_warnings = True
        self._enforcer.suppress_deprecation_warnings = True
        self._enforcer.register_defaults(defaults(rules))
        self._now = now
        self._looked_at = -_LOOK_SECONDS
        self._rules: Any = None
        self._said = ""
        self._remembers = False
        self._decisions: dict[Any, bool] = {}

    @property
    def library(self) -> policy.Enforcer:
        """oslo.policy's own enforcer."""
        return self._enforcer

    def load(self) -> None:
        """Read the policy file if it changed. Raises InvalidConfiguration for a broken one; the rules stay."""
        try:
            self._enforcer.load_rules()
        except (AttributeError, TypeError, ValueError, cfg.Error) as exc:
            where = self._enforcer.policy_path or "policy_file"
            raise exceptions.InvalidConfiguration(f"[oslo_policy] {where}: {' '.join(str(exc).split())}") from exc
        if self._rules is not self._enforcer.rules:
            self._rules = self._enforcer.rules
            self._remembers = not any("http" in str(check) for check in self._enforcer.rules.values())
            self._decisions = {}
        self._looked_at = self._now()

    def _look_again(self) -> None:
        """An operator's slip in the file is said, and does not stop the service: it goes on with the rules it has."""
        try:
            self.load()
        except exceptions.InvalidConfiguration as exc:
            if self._rules is None:
                raise
            if self._said != str(exc):
                LOG.error("the policy stays as it was: %s", exc)
            self._said = str(exc)
            self._looked_at = self._now()

    def authorize(self, rule: str, target: Mapping[str, Any] | None, context: RequestContext) -> None:
        """Raise `Fault` 403 when the rule refuses."""
        if not self.allows(rule, target, context):
            raise forbidden(f"Policy doesn't allow {rule} to be performed.")

    def allows(self, rule: str, target: Mapping[str, Any] | None, context: RequestContext) -> bool:
        """Whether the rule passes for the target; a token of another scope than the rule takes does not."""
        if self._now() - self._looked_at >= _LOOK_SECONDS:
            self._look_again()
        about = {"project_id": context.project_id, "user_id": context.user_id} if target is None else dict(target)
        if not self._remembers:
            return self._decide(rule, about, context)
        key = rule, tuple(sorted(about.items(), key=lambda item: item[0])), _identity(context)
        decisions = self._decisions
        found = decisions.get(key)
        if found is None:
            found = self._decide(rule, about, context)
            if len(decisions) >= _MOST_DECISIONS:
                decisions.clear()
            decisions[key] = found
        return found

    def _decide(self, rule: str, about: dict[str, Any], context: RequestContext) -> bool:
        try:
            return bool(self._enforcer.authorize(rule, about, credentials(context), do_raise=False))
        except policy.InvalidScope:
            LOG.debug("policy %s refuses a token of this scope", rule)
            return False


def _identity(context: RequestContext) -> tuple[Any, ...]:
    """All of a caller that `credentials` shows to rules."""
    return (
        context.user_id,
        context.project_id,
        context.user_domain_id,
        context.project_domain_id,
        context.domain_id,
        tuple(context.roles),
        tuple(context.service_roles),
        context.is_admin,
        context.system_scope,
    )


def credentials(context: RequestContext) -> dict[str, Any]:
    """What rules may ask about the caller."""
    return {
        "user_id": context.user_id,
        "project_id": context.project_id,
        "user_domain_id": context.user_domain_id,
        "project_domain_id": context.project_domain_id,
        "roles": list(context.roles),
        "is_admin": context.is_admin,
        "system_scope": context.system_scope,
        "domain_id": context.domain_id,
        "service_roles": list(context.service_roles),
    }


def defaults(rules: Iterable[Rule]) -> list[policy.RuleDefault]:
    """The rules as oslo.policy has them."""
    return [_default(rule) for rule in rules]


def _default(rule: Rule) -> policy.RuleDefault:
    deprecated = rule.deprecated and policy.DeprecatedRule(
        name=rule.deprecated.name,
        check_str=rule.deprecated.check,
        deprecated_reason="the default follows secure RBAC",
        deprecated_since=rule.deprecated.since or "21.0.0",
    )
    common: dict[str, Any] = {"name": rule.name, "check_str": rule.check, "deprecated_rule": deprecated}
    if rule.removal_since:
        common |= {
            "deprecated_for_removal": True,
            "deprecated_reason": "kept for older policy files",
            "deprecated_since": rule.removal_since,
        }
    if rule.scope_types is not None:
        common["scope_types"] = list(rule.scope_types)
    if not rule.operations:
        return policy.RuleDefault(description=rule.name, **common)
    operations: list[Any] = [{"method": operation.method, "path": operation.path} for operation in rule.operations]
    return policy.DocumentedRuleDefault(description=rule.name, operations=operations, **common)
