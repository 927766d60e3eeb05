"""All requests of the compute API: which are served, which were removed and answer 410, whose policy each one asks.

What is declared here but bound to no handler answers 501. A line is ``METHOD[,METHOD...] PATH [ACTION]``, where an
action is the key of the body of a ``.../action`` path. Source: API reference, 2.1 to 2.104.
"""

import re
from collections.abc import Iterator
from typing import Final

from kilonova.contract import policies
from kilonova.contract.microversions import ALL, Versions, until

Key = tuple[str, str, str | None]

_SERVED = """
GET /versions/{id}
GET /extensions
GET /extensions/{id}
GET,POST /flavors
GET /flavors/detail
GET,PUT,DELETE /flavors/{id}
POST /flavors/{id}/action addTenantAccess
POST /flavors/{id}/action removeTenantAccess
GET,POST /flavors/{flavor_id}/os-extra_specs
GET,PUT,DELETE /flavors/{flavor_id}/os-extra_specs/{id}
GET /flavors/{flavor_id}/os-flavor-access
GET /images
GET /images/detail
GET,DELETE /images/{id}
GET,POST,PUT /images/{image_id}/metadata
GET,PUT,DELETE /images/{image_id}/metadata/{id}
GET /limits
GET,POST /os-aggregates
GET,PUT,DELETE /os-aggregates/{id}
POST /os-aggregates/{id}/action add_host
POST /os-aggregates/{id}/action remove_host
POST /os-aggregates/{id}/action set_metadata
POST /os-aggregates/{id}/images
POST /os-assisted-volume-snapshots
DELETE /os-assisted-volume-snapshots/{id}
GET /os-availability-zone
GET /os-availability-zone/detail
GET,POST /os-baremetal-nodes
GET,DELETE /os-baremetal-nodes/{id}
POST /os-baremetal-nodes/{id}/action add_interface
POST /os-baremetal-nodes/{id}/action remove_interface
GET /os-console-auth-tokens/{id}
GET /os-floating-ip-pools
GET,POST /os-floating-ips
GET,DELETE /os-floating-ips/{id}
GET /os-hosts
GET,PUT /os-hosts/{id}
GET /os-hosts/{id}/reboot
GET /os-hosts/{id}/shutdown
GET /os-hosts/{id}/startup
GET /os-hypervisors
GET /os-hypervisors/detail
GET /os-hypervisors/statistics
GET /os-hypervisors/{id}
GET /os-hypervisors/{id}/search
GET /os-hypervisors/{id}/servers
GET /os-hypervisors/{id}/uptime
GET /os-instance_usage_audit_log
GET /os-instance_usage_audit_log/{id}
GET,POST /os-keypairs
GET,DELETE /os-keypairs/{id}
GET /os-migrations
GET /os-networks
GET /os-networks/{id}
GET,PUT /os-quota-class-sets/{id}
GET,PUT,DELETE /os-quota-sets/{id}
GET /os-quota-sets/{id}/detail
GET /os-quota-sets/{id}/defaults
POST /os-security-group-rules
DELETE /os-security-group-rules/{id}
GET,POST /os-security-groups
GET,PUT,DELETE /os-security-groups/{id}
POST /os-server-external-events
GET,POST /os-server-groups
GET,DELETE /os-server-groups/{id}
GET /os-services
PUT,DELETE /os-services/{id}
GET /os-simple-tenant-usage
GET /os-simple-tenant-usage/{id}
GET,POST /os-snapshots
GET /os-snapshots/detail
GET,DELETE /os-snapshots/{id}
GET /os-tenant-networks
GET /os-tenant-networks/{id}
GET,POST /os-volumes
GET /os-volumes/detail
GET,DELETE /os-volumes/{id}
GET,POST /os-volumes_boot
GET /os-volumes_boot/detail
GET,PUT,DELETE /os-volumes_boot/{id}
POST /os-volumes_boot/{id}/action confirmResize
POST /os-volumes_boot/{id}/action createImage
POST /os-volumes_boot/{id}/action os-start
POST /os-volumes_boot/{id}/action os-stop
POST /os-volumes_boot/{id}/action reboot
POST /os-volumes_boot/{id}/action rebuild
POST /os-volumes_boot/{id}/action resize
POST /os-volumes_boot/{id}/action revertResize
POST /os-volumes_boot/{id}/action trigger_crash_dump
GET,POST /servers
GET /servers/detail
GET,PUT,DELETE /servers/{id}
POST /servers/{id}/action addFixedIp
POST /servers/{id}/action addFloatingIp
POST /servers/{id}/action addSecurityGroup
POST /servers/{id}/action changePassword
POST /servers/{id}/action confirmResize
POST /servers/{id}/action createBackup
POST /servers/{id}/action createImage
POST /servers/{id}/action evacuate
POST /servers/{id}/action forceDelete
POST /servers/{id}/action injectNetworkInfo
POST /servers/{id}/action lock
POST /servers/{id}/action migrate
POST /servers/{id}/action os-getConsoleOutput
POST /servers/{id}/action os-getSPICEConsole
POST /servers/{id}/action os-getSerialConsole
POST /servers/{id}/action os-getVNCConsole
POST /servers/{id}/action os-migrateLive
POST /servers/{id}/action os-resetState
POST /servers/{id}/action os-start
POST /servers/{id}/action os-stop
POST /servers/{id}/action pause
POST /servers/{id}/action reboot
POST /servers/{id}/action rebuild
POST /servers/{id}/action removeFixedIp
POST /servers/{id}/action removeFloatingIp
POST /servers/{id}/action removeSecurityGroup
POST /servers/{id}/action rescue
POST /servers/{id}/action resize
POST /servers/{id}/action restore
POST /servers/{id}/action resume
POST /servers/{id}/action revertResize
POST /servers/{id}/action shelve
POST /servers/{id}/action shelveOffload
POST /servers/{id}/action suspend
POST /servers/{id}/action trigger_crash_dump
POST /servers/{id}/action unlock
POST /servers/{id}/action unpause
POST /servers/{id}/action unrescue
POST /servers/{id}/action unshelve
GET /servers/{server_id}/diagnostics
GET /servers/{server_id}/ips
GET /servers/{server_id}/ips/{id}
GET,POST,PUT /servers/{server_id}/metadata
GET,PUT,DELETE /servers/{server_id}/metadata/{id}
GET /servers/{server_id}/migrations
GET,DELETE /servers/{server_id}/migrations/{id}
POST /servers/{server_id}/migrations/{id}/action force_complete
GET /servers/{server_id}/os-instance-actions
GET /servers/{server_id}/os-instance-actions/{id}
GET,POST /servers/{server_id}/os-interface
GET,DELETE /servers/{server_id}/os-interface/{id}
GET,DELETE /servers/{server_id}/os-server-password
GET,POST /servers/{server_id}/os-volume_attachments
GET,PUT,DELETE /servers/{server_id}/os-volume_attachments/{id}
POST /servers/{server_id}/remote-consoles
GET /servers/{server_id}/os-security-groups
GET,POST /servers/{server_id}/shares
GET,DELETE /servers/{server_id}/shares/{id}
GET,PUT,DELETE /servers/{server_id}/tags
GET,PUT,DELETE /servers/{server_id}/tags/{id}
GET /servers/{server_id}/topology
"""

_REMOVED = """
GET,POST /os-agents
PUT,DELETE /os-agents/{id}
POST,GET /os-cells
GET /os-cells/capacities
GET /os-cells/detail
GET /os-cells/info
POST /os-cells/sync_instances
GET,PUT,DELETE /os-cells/{id}
GET /os-cells/{id}/capacities
POST /os-certificates
GET /os-certificates/{id}
GET,POST /os-cloudpipe
PUT /os-cloudpipe/{id}
GET /os-fixed-ips/{id}
POST /os-fixed-ips/{id}/action reserve
POST /os-fixed-ips/{id}/action unreserve
GET /os-floating-ip-dns
PUT,DELETE /os-floating-ip-dns/{id}
GET,PUT,DELETE /os-floating-ip-dns/{domain_id}/entries/{id}
GET,POST /os-floating-ips-bulk
GET,PUT /os-floating-ips-bulk/{id}
GET /os-fping
GET /os-fping/{id}
POST /os-networks
POST /os-networks/add
DELETE /os-networks/{id}
POST /os-networks/{id}/action associate_host
POST /os-networks/{id}/action disassociate
POST /os-networks/{id}/action disassociate_host
POST /os-networks/{id}/action disassociate_project
GET,POST /os-security-group-default-rules
GET,DELETE /os-security-group-default-rules/{id}
POST /os-tenant-networks
DELETE /os-tenant-networks/{id}
POST /servers/{id}/action os-getRDPConsole
POST /servers/{id}/action resetNetwork
GET,POST /servers/{server_id}/consoles
GET,DELETE /servers/{server_id}/consoles/{id}
GET /servers/{server_id}/os-virtual-interfaces
"""

_GONE: Final = 410
_GONE_IN: Final[dict[Key, tuple[Versions, int]]] = {
    ("POST", "/servers/{id}/action", "os-getRDPConsole"): (until(5), 400)
}
"""Removed requests that had an end before they were removed: above it they never were. Not all answer 410."""


def _keys(lines: str) -> Iterator[Key]:
    for line in lines.split("\n"):
        if line:
            methods, path, *action = line.split(" ")
            for method in methods.split(","):
                yield method, path, action[0] if action else None


def served() -> list[Key]:
    """(method, path, action) of every request that the API has."""
    return list(_keys(_SERVED))


def removed() -> dict[Key, tuple[Versions, int]]:
    """Every request that the API had, with the microversions that still know it and the code that they answer."""
    return {key: _GONE_IN.get(key, (ALL, _GONE)) for key in _keys(_REMOVED)}


_PARAMETER: Final = re.compile(r"\{\w+\}")


def rules() -> dict[Key, list[str]]:
    """Every request that the API has, with the policy rules that name it among their operations."""
    found: dict[tuple[str, str], list[str]] = {}
    for rule in policies.RULES:
        for operation in rule.operations:
            found.setdefault((operation.method, _PARAMETER.sub("{}", operation.path)), []).append(rule.name)
    return {
        (method, path, action): found.get((method, _operation(path, action)), []) for method, path, action in served()
    }


def _operation(path: str, action: str | None) -> str:
    """A request's path as policy operations write it, whatever its parameters are called."""
    bare = _PARAMETER.sub("{}", path)
    return f"{bare} ({action})" if action else bare
