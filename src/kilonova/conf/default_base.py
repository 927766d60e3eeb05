"""What every process knows of itself: its host name, address and directories."""

from oslo_config import cfg

GROUP: str | None = None

OPTIONS: list[cfg.Opt] = [
    cfg.HostDomainOpt(
        "host",
        sample_default="<current_hostname>",
        help="Name of this host in service records, on the message bus and in Neutron; the machine's host name "
        "when unset. It identifies the host for good: do not change it while servers run here.",
    ),
    cfg.StrOpt(
        "my_ip",
        sample_default="<host_ipv4>",
        help="Address by which other hosts reach this one on the management network; the source address of the "
        "default route when unset.",
    ),
    cfg.StrOpt(
        "pybasedir",
        sample_default="<Path>",
        help="Directory of the installed Python packages; base of other defaults.",
    ),
    cfg.StrOpt(
        "state_path",
        default="$pybasedir",
        help="Directory in which the service keeps what must survive a restart, such as guests' disks and its journal.",
    ),
]
