"""Policy enforcement: the rules of the contract under an operator's policy file (oslo.policy)."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from oslo_config import cfg
from oslo_policy import policy

from kilonova.contract.context import RequestContext
from kilonova.contract.policies import Rule
from kilonova.wire.http.faults import forbidden

LOG = logging.getLogger(__name__)


class Policy(Protocol):
    """Says whether a caller may."""

    def authorize(self, rule: str, target: Mapping[str, Any] | None, context: RequestContext) -> None: ...

    def allows(self, rule: str, target: Mapping[str, Any] | None, context: RequestContext) -> bool: ...


class IsAdmin(policy.Check):
    """``is_admin:True`` in older policy files: what the rule ``context_is_admin`` said of the caller."""

    def __call__(self, target: Any, creds: Mapping[str, Any], enforcer: Any, current_rule: Any = None) -> bool:
        return bool(creds["is_admin"]) is (self.match.lower() == "true")


class Enforcer:
    """oslo.policy over ``rules``; the policy file is read on first use and again when it changes."""

    def __init__(self, conf: cfg.ConfigOpts, rules: Iterable[Rule]) -> None:
        policy.register("is_admin", IsAdmin)
        self._enforcer = policy.Enforcer(conf)
        # Every default differs from the deprecated rule that it replaced; a line per rule at each start says nothing.
        self._enforcer.suppress_default_change_warnings = True
        self._enforcer.suppress_deprecation_warnings = True
        self._enforcer.register_defaults([_default(rule) for rule in rules])

    def load(self) -> None:
        """Read the policy file now. Raises what oslo.policy raises for a broken one."""
        self._enforcer.load_rules()

    def authorize(self, rule: str, target: Mapping[str, Any] | None, context: RequestContext) -> None:
        """Raise `Fault` 403 when the rule refuses."""
        if not self.allows(rule, target, context):
            raise forbidden(f"Policy doesn't allow {rule} to be performed.")

    def allows(self, rule: str, target: Mapping[str, Any] | None, context: RequestContext) -> bool:
        """Whether the rule passes for the target; a token of another scope than the rule takes does not."""
        about = {"project_id": context.project_id, "user_id": context.user_id} if target is None else dict(target)
        try:
            return bool(self._enforcer.authorize(rule, about, credentials(context), do_raise=False))
        except policy.InvalidScope:
            LOG.debug("policy %s refuses a token of this scope", rule)
            return False


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
        "domain_id": None,
        "service_roles": list(context.service_roles),
    }


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
