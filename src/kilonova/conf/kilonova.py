"""Options of our own: durable flows and reconcile loops."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "kilonova"

OPTIONS: list[cfg.Opt] = [
    cfg.FloatOpt(
        "flow_lease",
        default=60.0,
        min=2.0,
        help="Seconds for which a conductor holds a flow. It renews the lease while it works; when the conductor dies, "
        "another one goes on after at most this time.",
    ),
    cfg.FloatOpt(
        "flow_poll", default=2.0, min=0.05, help="Seconds between two looks of a conductor for flows that are due."
    ),
    cfg.IntOpt("flow_workers", default=16, min=1, help="Flows that one conductor process drives at the same time."),
    cfg.FloatOpt(
        "flow_grace",
        default=5.0,
        min=0.0,
        help="Seconds that a cast has to reach its receiver before a conductor takes the flow by itself. Builds are "
        "left alone for longer while conductors of Nova take from the same queue: they do not say what they took.",
    ),
    cfg.FloatOpt(
        "flow_watch",
        default=5.0,
        min=0.05,
        help="Seconds between two looks of a resting flow at the server that it waits for.",
    ),
    cfg.FloatOpt(
        "flow_resend",
        default=20.0,
        min=0.1,
        help="Seconds after which a cast that shows no effect is sent again.",
    ),
    cfg.FloatOpt(
        "flow_step_limit",
        default=900.0,
        min=5.0,
        help="Seconds that one step may take. After that its lease is no longer renewed.",
    ),
    cfg.IntOpt(
        "flow_keep_days",
        default=7,
        min=0,
        mutable=True,
        help="Days for which ended flows and their logs are kept, and for which an Idempotency-Key is known.",
    ),
    cfg.FloatOpt(
        "flow_keep_frames",
        default=3600.0,
        min=0.0,
        mutable=True,
        help="Seconds for which ended flows keep all that they knew of the request. After that the history is left.",
    ),
    cfg.ListOpt(
        "flow_seal_keys",
        default=[],
        secret=True,
        help="Pass phrases that protect passwords and tokens in stored flows; the first one closes, all of them open. "
        "API servers and conductors need the same ones. Default: derived from [api_database] connection.",
    ),
    cfg.FloatOpt(
        "build_deadline",
        default=3600.0,
        min=1.0,
        help="Seconds after which a build that is neither active nor failed is given up: the server goes to ERROR.",
    ),
    cfg.FloatOpt(
        "service_patience",
        default=300.0,
        min=0.0,
        help="Seconds for which an operation on a compute host waits for another service that is away. After that a "
        "build is tried on another host, and a delete is repeated later.",
    ),
    cfg.FloatOpt(
        "network_memory",
        default=5.0,
        min=0.0,
        help="Seconds for which builds that follow each other share what Neutron said of networks, subnets, DHCP "
        "servers and unlimited port quotas. A change in Neutron reaches new servers after at most this time; 0 asks "
        "each time.",
    ),
    cfg.BoolOpt(
        "ports_bound_at_once",
        default=True,
        help="Make the port of a new server and bind it to its host in one request, with the credentials of [neutron], "
        "after network and security groups were looked up for the user. When false, and whenever an address is asked "
        "for, the port is made with the user's token and then bound: for a Neutron whose policy keeps users that may "
        "create servers from making ports on networks they can see.",
    ),
    cfg.FloatOpt(
        "reconcile_interval",
        default=60.0,
        min=0.1,
        mutable=True,
        help="Seconds between two passes of each reconcile loop. Of all conductors one runs a loop; when it is gone "
        "for three passes, another one does.",
    ),
    cfg.IntOpt(
        "reconcile_hosts",
        default=50,
        min=1,
        mutable=True,
        help="Compute nodes whose allocations in Placement are looked at in one pass; the next pass goes on with the "
        "next ones. Each costs Placement two requests, made by one conductor of all.",
    ),
    cfg.FloatOpt(
        "reconcile_grace",
        default=60.0,
        min=0.0,
        mutable=True,
        help="Seconds for which something must look wrong, in every pass, before it is repaired.",
    ),
    cfg.BoolOpt(
        "reconcile_dry_run",
        default=False,
        mutable=True,
        help="Report what would be repaired and change nothing.",
    ),
    cfg.BoolOpt(
        "strict_hosts",
        default=False,
        mutable=True,
        help="Conductors do for a compute host only what hosts of kilonova need, about the host itself and the servers "
        "that it has to do with. For cells in which every nova-compute is kilonova's and knows this option; those of "
        "Nova's are refused everything.",
    ),
    cfg.ListOpt("reconcile_disabled", default=[], mutable=True, help="Names of reconcile loops that do not run."),
]
