"""The policy rules of the compute API, as data.

Each rule carries what an operator's policy file may override (`name`,
`check`), the token scopes it accepts, the REST operations it guards and the
older rule it replaced. Turning them into oslo.policy defaults is the API's work.
Source: the policy reference of the Compute API, 2026.2.
"""

from __future__ import annotations

import dataclasses

ADMIN = "rule:context_is_admin"
MANAGER = "rule:project_manager_or_admin"
MEMBER = "rule:project_member_or_admin"
READER = "rule:project_reader_or_admin"
SERVICE = "rule:service_or_admin"
ADMIN_OR_USER = "(rule:context_is_admin) or user_id:%(user_id)s"
ANYONE = "@"

OLD_ADMIN = "rule:admin_api"
OLD_OWNER = "rule:admin_or_owner"
OLD_ADMIN_CHECK = "is_admin:True"
OLD_OWNER_CHECK = "is_admin:True or project_id:%(project_id)s"

PROJECT = ("project",)


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """One REST request: HTTP method and path template (an action is written `/path (action)`)."""

    method: str
    path: str


@dataclasses.dataclass(frozen=True, slots=True)
class Deprecated:
    """The rule that was asked before; its check still passes while new defaults are not enforced."""

    name: str
    check: str
    since: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """A rule; `scope_types` None takes any token scope, `removal_since` marks one kept only for old policy files."""

    name: str
    check: str
    operations: tuple[Operation, ...] = ()
    scope_types: tuple[str, ...] | None = PROJECT
    deprecated: Deprecated | None = None
    removal_since: str | None = None


def _rule(
    name: str,
    check: str,
    *operations: str,
    scope_types: tuple[str, ...] | None = PROJECT,
    deprecated: Deprecated | None = None,
    removal_since: str | None = None,
) -> Rule:
    parsed = tuple(Operation(*text.split(" ", 1)) for text in operations)
    return Rule(name, check, parsed, scope_types, deprecated, removal_since)


ROLES: tuple[Rule, ...] = (
    _rule("admin_api", OLD_ADMIN_CHECK, scope_types=None, removal_since="21.0.0"),
    _rule("admin_or_owner", OLD_OWNER_CHECK, scope_types=None, removal_since="21.0.0"),
    _rule(
        "context_is_admin",
        "role:admin",
        scope_types=None,
        deprecated=Deprecated("rule:admin_api", OLD_ADMIN_CHECK, "21.0.0"),
    ),
    _rule(
        "project_manager_api",
        "role:manager and project_id:%(project_id)s",
        scope_types=None,
        deprecated=Deprecated("rule:admin_api", OLD_ADMIN_CHECK, "21.0.0"),
    ),
    _rule(
        "project_manager_or_admin",
        "rule:project_manager_api or rule:context_is_admin",
        scope_types=None,
        deprecated=Deprecated("rule:admin_api", OLD_ADMIN_CHECK, "21.0.0"),
    ),
    _rule(
        "project_member_api",
        "role:member and project_id:%(project_id)s",
        scope_types=None,
        deprecated=Deprecated("rule:admin_or_owner", OLD_OWNER_CHECK, "21.0.0"),
    ),
    _rule(
        "project_member_or_admin",
        "rule:project_member_api or rule:context_is_admin",
        scope_types=None,
        deprecated=Deprecated("rule:admin_or_owner", OLD_OWNER_CHECK, "21.0.0"),
    ),
    _rule(
        "project_reader_api",
        "role:reader and project_id:%(project_id)s",
        scope_types=None,
        deprecated=Deprecated("rule:admin_or_owner", OLD_OWNER_CHECK, "21.0.0"),
    ),
    _rule(
        "project_reader_or_admin",
        "rule:project_reader_api or rule:context_is_admin",
        scope_types=None,
        deprecated=Deprecated("rule:admin_or_owner", OLD_OWNER_CHECK, "21.0.0"),
    ),
    _rule(
        "service_api",
        "role:service",
        scope_types=None,
        deprecated=Deprecated("rule:admin_api", OLD_ADMIN_CHECK, "21.0.0"),
    ),
    _rule(
        "service_or_admin",
        "rule:service_api or rule:context_is_admin",
        scope_types=None,
        deprecated=Deprecated("rule:admin_api", OLD_ADMIN_CHECK, "21.0.0"),
    ),
)
"""Rules that other rules refer to; no REST operation names them."""

OPERATIONS: tuple[Rule, ...] = (
    _rule("compute:aggregates:images", ADMIN, "POST /os-aggregates/{aggregate_id}/images"),
    _rule("compute:server:topology:host:index", ADMIN, "GET /servers/{server_id}/topology"),
    _rule("compute:server:topology:index", READER, "GET /servers/{server_id}/topology"),
    _rule("compute:servers:create:requested_destination", ADMIN, "POST /servers"),
    _rule("compute:servers:resize:cross_cell", "!", "POST /servers/{server_id}/action (resize)"),
    _rule("network:attach_external_network", ADMIN, "POST /servers", "POST /servers/{server_id}/os-interface"),
    _rule("os_compute_api:extensions", ANYONE, "GET /extensions", "GET /extensions/{alias}"),
    _rule("os_compute_api:ips:index", READER, "GET /servers/{server_id}/ips"),
    _rule("os_compute_api:ips:show", READER, "GET /servers/{server_id}/ips/{network_label}"),
    _rule("os_compute_api:limits", ANYONE, "GET /limits"),
    _rule(
        "os_compute_api:limits:other_project",
        ADMIN,
        "GET /limits",
        deprecated=Deprecated("os_compute_api:os-used-limits", OLD_ADMIN, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-admin-actions:inject_network_info",
        ADMIN,
        "POST /servers/{server_id}/action (injectNetworkInfo)",
    ),
    _rule("os_compute_api:os-admin-actions:reset_state", ADMIN, "POST /servers/{server_id}/action (os-resetState)"),
    _rule("os_compute_api:os-admin-password", MEMBER, "POST /servers/{server_id}/action (changePassword)"),
    _rule("os_compute_api:os-aggregates:add_host", ADMIN, "POST /os-aggregates/{aggregate_id}/action (add_host)"),
    _rule("os_compute_api:os-aggregates:create", ADMIN, "POST /os-aggregates"),
    _rule("os_compute_api:os-aggregates:delete", ADMIN, "DELETE /os-aggregates/{aggregate_id}"),
    _rule("os_compute_api:os-aggregates:index", ADMIN, "GET /os-aggregates"),
    _rule("os_compute_api:os-aggregates:remove_host", ADMIN, "POST /os-aggregates/{aggregate_id}/action (remove_host)"),
    _rule(
        "os_compute_api:os-aggregates:set_metadata",
        ADMIN,
        "POST /os-aggregates/{aggregate_id}/action (set_metadata)",
    ),
    _rule("os_compute_api:os-aggregates:show", ADMIN, "GET /os-aggregates/{aggregate_id}"),
    _rule("os_compute_api:os-aggregates:update", ADMIN, "PUT /os-aggregates/{aggregate_id}"),
    _rule("os_compute_api:os-assisted-volume-snapshots:create", SERVICE, "POST /os-assisted-volume-snapshots"),
    _rule(
        "os_compute_api:os-assisted-volume-snapshots:delete",
        SERVICE,
        "DELETE /os-assisted-volume-snapshots/{snapshot_id}",
    ),
    _rule(
        "os_compute_api:os-attach-interfaces:create",
        MEMBER,
        "POST /servers/{server_id}/os-interface",
        deprecated=Deprecated("os_compute_api:os-attach-interfaces", OLD_OWNER, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-attach-interfaces:delete",
        MEMBER,
        "DELETE /servers/{server_id}/os-interface/{port_id}",
        deprecated=Deprecated("os_compute_api:os-attach-interfaces", OLD_OWNER, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-attach-interfaces:list",
        READER,
        "GET /servers/{server_id}/os-interface",
        deprecated=Deprecated("os_compute_api:os-attach-interfaces", OLD_OWNER, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-attach-interfaces:show",
        READER,
        "GET /servers/{server_id}/os-interface/{port_id}",
        deprecated=Deprecated("os_compute_api:os-attach-interfaces", OLD_OWNER, "21.0.0"),
    ),
    _rule("os_compute_api:os-availability-zone:detail", ADMIN, "GET /os-availability-zone/detail"),
    _rule("os_compute_api:os-availability-zone:list", ANYONE, "GET /os-availability-zone"),
    _rule(
        "os_compute_api:os-baremetal-nodes:list",
        ADMIN,
        "GET /os-baremetal-nodes",
        deprecated=Deprecated("os_compute_api:os-baremetal-nodes", OLD_ADMIN, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-baremetal-nodes:show",
        ADMIN,
        "GET /os-baremetal-nodes/{node_id}",
        deprecated=Deprecated("os_compute_api:os-baremetal-nodes", OLD_ADMIN, "22.0.0"),
    ),
    _rule("os_compute_api:os-console-auth-tokens", ADMIN, "GET /os-console-auth-tokens/{console_token}"),
    _rule("os_compute_api:os-console-output", MEMBER, "POST /servers/{server_id}/action (os-getConsoleOutput)"),
    _rule("os_compute_api:os-create-backup", MEMBER, "POST /servers/{server_id}/action (createBackup)"),
    _rule(
        "os_compute_api:os-deferred-delete:force",
        MEMBER,
        "POST /servers/{server_id}/action (forceDelete)",
        deprecated=Deprecated("os_compute_api:os-deferred-delete", OLD_OWNER, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-deferred-delete:restore",
        MEMBER,
        "POST /servers/{server_id}/action (restore)",
        deprecated=Deprecated("os_compute_api:os-deferred-delete", OLD_OWNER, "21.0.0"),
    ),
    _rule("os_compute_api:os-evacuate", ADMIN, "POST /servers/{server_id}/action (evacuate)"),
    _rule(
        "os_compute_api:os-extended-server-attributes",
        ADMIN,
        "GET /servers/{id}",
        "GET /servers/detail",
        "PUT /servers/{server_id}",
        "POST /servers/{server_id}/action (rebuild)",
    ),
    _rule(
        "os_compute_api:os-flavor-access",
        ADMIN,
        "GET /flavors/{flavor_id}/os-flavor-access",
        deprecated=Deprecated("os_compute_api:os-flavor-access", OLD_OWNER, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-flavor-access:add_tenant_access",
        ADMIN,
        "POST /flavors/{flavor_id}/action (addTenantAccess)",
    ),
    _rule(
        "os_compute_api:os-flavor-access:remove_tenant_access",
        ADMIN,
        "POST /flavors/{flavor_id}/action (removeTenantAccess)",
    ),
    _rule("os_compute_api:os-flavor-extra-specs:create", ADMIN, "POST /flavors/{flavor_id}/os-extra_specs/"),
    _rule(
        "os_compute_api:os-flavor-extra-specs:delete",
        ADMIN,
        "DELETE /flavors/{flavor_id}/os-extra_specs/{flavor_extra_spec_key}",
    ),
    _rule(
        "os_compute_api:os-flavor-extra-specs:index",
        READER,
        "GET /flavors/{flavor_id}/os-extra_specs/",
        "POST /flavors",
        "GET /flavors/detail",
        "GET /flavors/{flavor_id}",
        "PUT /flavors/{flavor_id}",
    ),
    _rule(
        "os_compute_api:os-flavor-extra-specs:show",
        READER,
        "GET /flavors/{flavor_id}/os-extra_specs/{flavor_extra_spec_key}",
    ),
    _rule(
        "os_compute_api:os-flavor-extra-specs:update",
        ADMIN,
        "PUT /flavors/{flavor_id}/os-extra_specs/{flavor_extra_spec_key}",
    ),
    _rule("os_compute_api:os-flavor-manage:create", ADMIN, "POST /flavors"),
    _rule("os_compute_api:os-flavor-manage:delete", ADMIN, "DELETE /flavors/{flavor_id}"),
    _rule("os_compute_api:os-flavor-manage:update", ADMIN, "PUT /flavors/{flavor_id}"),
    _rule("os_compute_api:os-floating-ip-pools", ANYONE, "GET /os-floating-ip-pools"),
    _rule(
        "os_compute_api:os-floating-ips:add",
        MEMBER,
        "POST /servers/{server_id}/action (addFloatingIp)",
        deprecated=Deprecated("os_compute_api:os-floating-ips", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-floating-ips:create",
        MEMBER,
        "POST /os-floating-ips",
        deprecated=Deprecated("os_compute_api:os-floating-ips", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-floating-ips:delete",
        MEMBER,
        "DELETE /os-floating-ips/{floating_ip_id}",
        deprecated=Deprecated("os_compute_api:os-floating-ips", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-floating-ips:list",
        READER,
        "GET /os-floating-ips",
        deprecated=Deprecated("os_compute_api:os-floating-ips", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-floating-ips:remove",
        MEMBER,
        "POST /servers/{server_id}/action (removeFloatingIp)",
        deprecated=Deprecated("os_compute_api:os-floating-ips", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-floating-ips:show",
        READER,
        "GET /os-floating-ips/{floating_ip_id}",
        deprecated=Deprecated("os_compute_api:os-floating-ips", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-hosts:list",
        ADMIN,
        "GET /os-hosts",
        deprecated=Deprecated("os_compute_api:os-hosts", OLD_ADMIN, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-hosts:reboot",
        ADMIN,
        "GET /os-hosts/{host_name}/reboot",
        deprecated=Deprecated("os_compute_api:os-hosts", OLD_ADMIN, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-hosts:show",
        ADMIN,
        "GET /os-hosts/{host_name}",
        deprecated=Deprecated("os_compute_api:os-hosts", OLD_ADMIN, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-hosts:shutdown",
        ADMIN,
        "GET /os-hosts/{host_name}/shutdown",
        deprecated=Deprecated("os_compute_api:os-hosts", OLD_ADMIN, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-hosts:start",
        ADMIN,
        "GET /os-hosts/{host_name}/startup",
        deprecated=Deprecated("os_compute_api:os-hosts", OLD_ADMIN, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-hosts:update",
        ADMIN,
        "PUT /os-hosts/{host_name}",
        deprecated=Deprecated("os_compute_api:os-hosts", OLD_ADMIN, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-hypervisors:list",
        ADMIN,
        "GET /os-hypervisors",
        deprecated=Deprecated("os_compute_api:os-hypervisors", OLD_ADMIN, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-hypervisors:list-detail",
        ADMIN,
        "GET /os-hypervisors/details",
        deprecated=Deprecated("os_compute_api:os-hypervisors", OLD_ADMIN, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-hypervisors:search",
        ADMIN,
        "GET /os-hypervisors/{hypervisor_hostname_pattern}/search",
        deprecated=Deprecated("os_compute_api:os-hypervisors", OLD_ADMIN, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-hypervisors:servers",
        ADMIN,
        "GET /os-hypervisors/{hypervisor_hostname_pattern}/servers",
        deprecated=Deprecated("os_compute_api:os-hypervisors", OLD_ADMIN, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-hypervisors:show",
        ADMIN,
        "GET /os-hypervisors/{hypervisor_id}",
        deprecated=Deprecated("os_compute_api:os-hypervisors", OLD_ADMIN, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-hypervisors:statistics",
        ADMIN,
        "GET /os-hypervisors/statistics",
        deprecated=Deprecated("os_compute_api:os-hypervisors", OLD_ADMIN, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-hypervisors:uptime",
        ADMIN,
        "GET /os-hypervisors/{hypervisor_id}/uptime",
        deprecated=Deprecated("os_compute_api:os-hypervisors", OLD_ADMIN, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-instance-actions:events",
        ADMIN,
        "GET /servers/{server_id}/os-instance-actions/{request_id}",
    ),
    _rule(
        "os_compute_api:os-instance-actions:events:details",
        ADMIN,
        "GET /servers/{server_id}/os-instance-actions/{request_id}",
    ),
    _rule(
        "os_compute_api:os-instance-actions:list",
        READER,
        "GET /servers/{server_id}/os-instance-actions",
        deprecated=Deprecated("os_compute_api:os-instance-actions", OLD_OWNER, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-instance-actions:show",
        READER,
        "GET /servers/{server_id}/os-instance-actions/{request_id}",
        deprecated=Deprecated("os_compute_api:os-instance-actions", OLD_OWNER, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-instance-usage-audit-log:list",
        ADMIN,
        "GET /os-instance_usage_audit_log",
        deprecated=Deprecated("os_compute_api:os-instance-usage-audit-log", OLD_ADMIN, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-instance-usage-audit-log:show",
        ADMIN,
        "GET /os-instance_usage_audit_log/{before_timestamp}",
        deprecated=Deprecated("os_compute_api:os-instance-usage-audit-log", OLD_ADMIN, "21.0.0"),
    ),
    _rule("os_compute_api:os-keypairs:create", ADMIN_OR_USER, "POST /os-keypairs"),
    _rule("os_compute_api:os-keypairs:delete", ADMIN_OR_USER, "DELETE /os-keypairs/{keypair_name}"),
    _rule("os_compute_api:os-keypairs:index", ADMIN_OR_USER, "GET /os-keypairs"),
    _rule("os_compute_api:os-keypairs:show", ADMIN_OR_USER, "GET /os-keypairs/{keypair_name}"),
    _rule("os_compute_api:os-lock-server:lock", MEMBER, "POST /servers/{server_id}/action (lock)"),
    _rule("os_compute_api:os-lock-server:unlock", MEMBER, "POST /servers/{server_id}/action (unlock)"),
    _rule("os_compute_api:os-lock-server:unlock:unlock_override", ADMIN, "POST /servers/{server_id}/action (unlock)"),
    _rule("os_compute_api:os-migrate-server:migrate", MANAGER, "POST /servers/{server_id}/action (migrate)"),
    _rule("os_compute_api:os-migrate-server:migrate:host", ADMIN, "POST /servers/{server_id}/action (migrate)"),
    _rule(
        "os_compute_api:os-migrate-server:migrate_live",
        MANAGER,
        "POST /servers/{server_id}/action (os-migrateLive)",
    ),
    _rule(
        "os_compute_api:os-migrate-server:migrate_live:host",
        ADMIN,
        "POST /servers/{server_id}/action (os-migrateLive)",
        deprecated=Deprecated("os_compute_api:os-migrate-server:migrate_live", ADMIN, "32.0.0"),
    ),
    _rule("os_compute_api:os-migrations:index", MANAGER, "GET /os-migrations"),
    _rule(
        "os_compute_api:os-migrations:index:all_projects",
        ADMIN,
        "GET /os-migrations",
        deprecated=Deprecated("os_compute_api:os-migrations:index", ADMIN, "32.0.0"),
    ),
    _rule(
        "os_compute_api:os-migrations:index:host",
        ADMIN,
        "GET /os-migrations",
        deprecated=Deprecated("os_compute_api:os-migrations:index", ADMIN, "32.0.0"),
    ),
    _rule(
        "os_compute_api:os-multinic:add",
        MEMBER,
        "POST /servers/{server_id}/action (addFixedIp)",
        deprecated=Deprecated("os_compute_api:os-multinic", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-multinic:remove",
        MEMBER,
        "POST /servers/{server_id}/action (removeFixedIp)",
        deprecated=Deprecated("os_compute_api:os-multinic", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-networks:list",
        READER,
        "GET /os-networks",
        deprecated=Deprecated("os_compute_api:os-networks:view", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-networks:show",
        READER,
        "GET /os-networks/{network_id}",
        deprecated=Deprecated("os_compute_api:os-networks:view", OLD_OWNER, "22.0.0"),
    ),
    _rule("os_compute_api:os-pause-server:pause", MEMBER, "POST /servers/{server_id}/action (pause)"),
    _rule("os_compute_api:os-pause-server:unpause", MEMBER, "POST /servers/{server_id}/action (unpause)"),
    _rule("os_compute_api:os-quota-class-sets:show", ADMIN, "GET /os-quota-class-sets/{quota_class}"),
    _rule("os_compute_api:os-quota-class-sets:update", ADMIN, "PUT /os-quota-class-sets/{quota_class}"),
    _rule("os_compute_api:os-quota-sets:defaults", ANYONE, "GET /os-quota-sets/{tenant_id}/defaults"),
    _rule("os_compute_api:os-quota-sets:delete", ADMIN, "DELETE /os-quota-sets/{tenant_id}"),
    _rule("os_compute_api:os-quota-sets:detail", READER, "GET /os-quota-sets/{tenant_id}/detail"),
    _rule("os_compute_api:os-quota-sets:show", READER, "GET /os-quota-sets/{tenant_id}"),
    _rule("os_compute_api:os-quota-sets:update", ADMIN, "PUT /os-quota-sets/{tenant_id}"),
    _rule(
        "os_compute_api:os-remote-consoles",
        MEMBER,
        "POST /servers/{server_id}/action (os-getSerialConsole)",
        "POST /servers/{server_id}/action (os-getSPICEConsole)",
        "POST /servers/{server_id}/action (os-getVNCConsole)",
        "POST /servers/{server_id}/remote-consoles",
    ),
    _rule("os_compute_api:os-rescue", MEMBER, "POST /servers/{server_id}/action (rescue)"),
    _rule(
        "os_compute_api:os-security-groups:add",
        MEMBER,
        "POST /servers/{server_id}/action (addSecurityGroup)",
        deprecated=Deprecated("os_compute_api:os-security-groups", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-security-groups:create",
        MEMBER,
        "POST /os-security-groups",
        deprecated=Deprecated("os_compute_api:os-security-groups", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-security-groups:delete",
        MEMBER,
        "DELETE /os-security-groups/{security_group_id}",
        deprecated=Deprecated("os_compute_api:os-security-groups", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-security-groups:get",
        READER,
        "GET /os-security-groups",
        deprecated=Deprecated("os_compute_api:os-security-groups", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-security-groups:list",
        READER,
        "GET /servers/{server_id}/os-security-groups",
        deprecated=Deprecated("os_compute_api:os-security-groups", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-security-groups:remove",
        MEMBER,
        "POST /servers/{server_id}/action (removeSecurityGroup)",
        deprecated=Deprecated("os_compute_api:os-security-groups", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-security-groups:rule:create",
        MEMBER,
        "POST /os-security-group-rules",
        deprecated=Deprecated("os_compute_api:os-security-groups", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-security-groups:rule:delete",
        MEMBER,
        "DELETE /os-security-group-rules/{security_group_id}",
        deprecated=Deprecated("os_compute_api:os-security-groups", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-security-groups:show",
        READER,
        "GET /os-security-groups/{security_group_id}",
        deprecated=Deprecated("os_compute_api:os-security-groups", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-security-groups:update",
        MEMBER,
        "PUT /os-security-groups/{security_group_id}",
        deprecated=Deprecated("os_compute_api:os-security-groups", OLD_OWNER, "22.0.0"),
    ),
    _rule("os_compute_api:os-server-diagnostics", ADMIN, "GET /servers/{server_id}/diagnostics"),
    _rule("os_compute_api:os-server-external-events:create", SERVICE, "POST /os-server-external-events"),
    _rule("os_compute_api:os-server-groups:create", MEMBER, "POST /os-server-groups"),
    _rule("os_compute_api:os-server-groups:delete", MEMBER, "DELETE /os-server-groups/{server_group_id}"),
    _rule("os_compute_api:os-server-groups:index", READER, "GET /os-server-groups"),
    _rule("os_compute_api:os-server-groups:index:all_projects", ADMIN, "GET /os-server-groups"),
    _rule("os_compute_api:os-server-groups:show", READER, "GET /os-server-groups/{server_group_id}"),
    _rule(
        "os_compute_api:os-server-password:clear",
        MEMBER,
        "DELETE /servers/{server_id}/os-server-password",
        deprecated=Deprecated("os_compute_api:os-server-password", OLD_OWNER, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-server-password:show",
        READER,
        "GET /servers/{server_id}/os-server-password",
        deprecated=Deprecated("os_compute_api:os-server-password", OLD_OWNER, "21.0.0"),
    ),
    _rule("os_compute_api:os-server-shares:create", MEMBER, "POST /servers/{server_id}/shares"),
    _rule("os_compute_api:os-server-shares:delete", MEMBER, "DELETE /servers/{server_id}/shares/{share_id}"),
    _rule("os_compute_api:os-server-shares:index", READER, "GET /servers/{server_id}/shares"),
    _rule("os_compute_api:os-server-shares:show", READER, "GET /servers/{server_id}/shares/{share_id}"),
    _rule("os_compute_api:os-server-tags:delete", MEMBER, "DELETE /servers/{server_id}/tags/{tag}"),
    _rule("os_compute_api:os-server-tags:delete_all", MEMBER, "DELETE /servers/{server_id}/tags"),
    _rule("os_compute_api:os-server-tags:index", READER, "GET /servers/{server_id}/tags"),
    _rule("os_compute_api:os-server-tags:show", READER, "GET /servers/{server_id}/tags/{tag}"),
    _rule("os_compute_api:os-server-tags:update", MEMBER, "PUT /servers/{server_id}/tags/{tag}"),
    _rule("os_compute_api:os-server-tags:update_all", MEMBER, "PUT /servers/{server_id}/tags"),
    _rule(
        "os_compute_api:os-services:delete",
        ADMIN,
        "DELETE /os-services/{service_id}",
        deprecated=Deprecated("os_compute_api:os-services", OLD_ADMIN, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-services:list",
        ADMIN,
        "GET /os-services",
        deprecated=Deprecated("os_compute_api:os-services", OLD_ADMIN, "21.0.0"),
    ),
    _rule(
        "os_compute_api:os-services:update",
        ADMIN,
        "PUT /os-services/{service_id}",
        deprecated=Deprecated("os_compute_api:os-services", OLD_ADMIN, "21.0.0"),
    ),
    _rule("os_compute_api:os-shelve:shelve", MEMBER, "POST /servers/{server_id}/action (shelve)"),
    _rule("os_compute_api:os-shelve:shelve_offload", ADMIN, "POST /servers/{server_id}/action (shelveOffload)"),
    _rule("os_compute_api:os-shelve:unshelve", MEMBER, "POST /servers/{server_id}/action (unshelve)"),
    _rule("os_compute_api:os-shelve:unshelve_to_host", ADMIN, "POST /servers/{server_id}/action (unshelve)"),
    _rule("os_compute_api:os-simple-tenant-usage:list", ADMIN, "GET /os-simple-tenant-usage"),
    _rule("os_compute_api:os-simple-tenant-usage:show", READER, "GET /os-simple-tenant-usage/{tenant_id}"),
    _rule("os_compute_api:os-suspend-server:resume", MEMBER, "POST /servers/{server_id}/action (resume)"),
    _rule("os_compute_api:os-suspend-server:suspend", MEMBER, "POST /servers/{server_id}/action (suspend)"),
    _rule(
        "os_compute_api:os-tenant-networks:list",
        READER,
        "GET /os-tenant-networks",
        deprecated=Deprecated("os_compute_api:os-tenant-networks", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-tenant-networks:show",
        READER,
        "GET /os-tenant-networks/{network_id}",
        deprecated=Deprecated("os_compute_api:os-tenant-networks", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-unrescue",
        MEMBER,
        "POST /servers/{server_id}/action (unrescue)",
        deprecated=Deprecated("os_compute_api:os-rescue", OLD_OWNER, "21.0.0"),
    ),
    _rule("os_compute_api:os-volumes-attachments:create", MEMBER, "POST /servers/{server_id}/os-volume_attachments"),
    _rule(
        "os_compute_api:os-volumes-attachments:delete",
        MEMBER,
        "DELETE /servers/{server_id}/os-volume_attachments/{volume_id}",
    ),
    _rule("os_compute_api:os-volumes-attachments:index", READER, "GET /servers/{server_id}/os-volume_attachments"),
    _rule(
        "os_compute_api:os-volumes-attachments:show",
        READER,
        "GET /servers/{server_id}/os-volume_attachments/{volume_id}",
    ),
    _rule(
        "os_compute_api:os-volumes-attachments:swap",
        SERVICE,
        "PUT /servers/{server_id}/os-volume_attachments/{volume_id}",
    ),
    _rule(
        "os_compute_api:os-volumes-attachments:update",
        MEMBER,
        "PUT /servers/{server_id}/os-volume_attachments/{volume_id}",
    ),
    _rule(
        "os_compute_api:os-volumes:create",
        MEMBER,
        "POST /os-volumes",
        deprecated=Deprecated("os_compute_api:os-volumes", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-volumes:delete",
        MEMBER,
        "DELETE /os-volumes/{volume_id}",
        deprecated=Deprecated("os_compute_api:os-volumes", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-volumes:detail",
        READER,
        "GET /os-volumes/detail",
        deprecated=Deprecated("os_compute_api:os-volumes", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-volumes:list",
        READER,
        "GET /os-volumes",
        deprecated=Deprecated("os_compute_api:os-volumes", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-volumes:show",
        READER,
        "GET /os-volumes/{volume_id}",
        deprecated=Deprecated("os_compute_api:os-volumes", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-volumes:snapshots:create",
        MEMBER,
        "POST /os-snapshots",
        deprecated=Deprecated("os_compute_api:os-volumes", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-volumes:snapshots:delete",
        MEMBER,
        "DELETE /os-snapshots/{snapshot_id}",
        deprecated=Deprecated("os_compute_api:os-volumes", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-volumes:snapshots:detail",
        READER,
        "GET /os-snapshots/detail",
        deprecated=Deprecated("os_compute_api:os-volumes", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-volumes:snapshots:list",
        READER,
        "GET /os-snapshots",
        deprecated=Deprecated("os_compute_api:os-volumes", OLD_OWNER, "22.0.0"),
    ),
    _rule(
        "os_compute_api:os-volumes:snapshots:show",
        READER,
        "GET /os-snapshots/{snapshot_id}",
        deprecated=Deprecated("os_compute_api:os-volumes", OLD_OWNER, "22.0.0"),
    ),
    _rule("os_compute_api:server-metadata:create", MEMBER, "POST /servers/{server_id}/metadata"),
    _rule("os_compute_api:server-metadata:delete", MEMBER, "DELETE /servers/{server_id}/metadata/{key}"),
    _rule("os_compute_api:server-metadata:index", READER, "GET /servers/{server_id}/metadata"),
    _rule("os_compute_api:server-metadata:show", READER, "GET /servers/{server_id}/metadata/{key}"),
    _rule("os_compute_api:server-metadata:update", MEMBER, "PUT /servers/{server_id}/metadata/{key}"),
    _rule("os_compute_api:server-metadata:update_all", MEMBER, "PUT /servers/{server_id}/metadata"),
    _rule("os_compute_api:servers:allow_all_filters", ADMIN, "GET /servers", "GET /servers/detail"),
    _rule("os_compute_api:servers:confirm_resize", MEMBER, "POST /servers/{server_id}/action (confirmResize)"),
    _rule("os_compute_api:servers:create", MEMBER, "POST /servers"),
    _rule("os_compute_api:servers:create:attach_network", MEMBER, "POST /servers"),
    _rule("os_compute_api:servers:create:attach_volume", MEMBER, "POST /servers"),
    _rule("os_compute_api:servers:create:forced_host", ADMIN, "POST /servers"),
    _rule("os_compute_api:servers:create:trusted_certs", MEMBER, "POST /servers"),
    _rule("os_compute_api:servers:create:zero_disk_flavor", ADMIN, "POST /servers"),
    _rule("os_compute_api:servers:create_image", MEMBER, "POST /servers/{server_id}/action (createImage)"),
    _rule(
        "os_compute_api:servers:create_image:allow_volume_backed",
        MEMBER,
        "POST /servers/{server_id}/action (createImage)",
    ),
    _rule("os_compute_api:servers:delete", MEMBER, "DELETE /servers/{server_id}"),
    _rule("os_compute_api:servers:detail", READER, "GET /servers/detail"),
    _rule("os_compute_api:servers:detail:get_all_tenants", ADMIN, "GET /servers/detail"),
    _rule("os_compute_api:servers:index", READER, "GET /servers"),
    _rule("os_compute_api:servers:index:get_all_tenants", ADMIN, "GET /servers"),
    _rule("os_compute_api:servers:migrations:delete", MANAGER, "DELETE /servers/{server_id}/migrations/{migration_id}"),
    _rule(
        "os_compute_api:servers:migrations:force_complete",
        MANAGER,
        "POST /servers/{server_id}/migrations/{migration_id}/action (force_complete)",
    ),
    _rule("os_compute_api:servers:migrations:index", MANAGER, "GET /servers/{server_id}/migrations"),
    _rule(
        "os_compute_api:servers:migrations:index:host",
        ADMIN,
        "GET /servers/{server_id}/migrations",
        deprecated=Deprecated("os_compute_api:servers:migrations:index", ADMIN, "32.0.0"),
    ),
    _rule("os_compute_api:servers:migrations:show", ADMIN, "GET /servers/{server_id}/migrations/{migration_id}"),
    _rule("os_compute_api:servers:reboot", MEMBER, "POST /servers/{server_id}/action (reboot)"),
    _rule("os_compute_api:servers:rebuild", MEMBER, "POST /servers/{server_id}/action (rebuild)"),
    _rule("os_compute_api:servers:rebuild:trusted_certs", MEMBER, "POST /servers/{server_id}/action (rebuild)"),
    _rule("os_compute_api:servers:resize", MEMBER, "POST /servers/{server_id}/action (resize)"),
    _rule("os_compute_api:servers:revert_resize", MEMBER, "POST /servers/{server_id}/action (revertResize)"),
    _rule("os_compute_api:servers:show", READER, "GET /servers/{server_id}"),
    _rule(
        "os_compute_api:servers:show:flavor-extra-specs",
        READER,
        "GET /servers/detail",
        "GET /servers/{server_id}",
        "PUT /servers/{server_id}",
        "POST /servers/{server_id}/action (rebuild)",
        deprecated=Deprecated("os_compute_api:os-flavor-extra-specs:index", OLD_OWNER, None),
    ),
    _rule(
        "os_compute_api:servers:show:host_status",
        ADMIN,
        "GET /servers/{server_id}",
        "GET /servers/detail",
        "PUT /servers/{server_id}",
        "POST /servers/{server_id}/action (rebuild)",
    ),
    _rule(
        "os_compute_api:servers:show:host_status:unknown-only",
        ADMIN,
        "GET /servers/{server_id}",
        "GET /servers/detail",
        "PUT /servers/{server_id}",
        "POST /servers/{server_id}/action (rebuild)",
    ),
    _rule("os_compute_api:servers:start", MEMBER, "POST /servers/{server_id}/action (os-start)"),
    _rule("os_compute_api:servers:stop", MEMBER, "POST /servers/{server_id}/action (os-stop)"),
    _rule("os_compute_api:servers:trigger_crash_dump", MEMBER, "POST /servers/{server_id}/action (trigger_crash_dump)"),
    _rule("os_compute_api:servers:update", MEMBER, "PUT /servers/{server_id}"),
)
"""Rules that guard REST operations."""

RULES: tuple[Rule, ...] = ROLES + OPERATIONS


def by_name() -> dict[str, Rule]:
    """All rules keyed by name."""
    return {rule.name: rule for rule in RULES}
