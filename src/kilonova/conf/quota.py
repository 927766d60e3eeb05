"""Default limits of projects, group ``[quota]``; -1 means no limit."""

from oslo_config import cfg

GROUP: str | None = "quota"


def _limit(name: str, default: int, what: str) -> cfg.Opt:
    return cfg.IntOpt(
        name,
        default=default,
        min=-1,
        deprecated_group="DEFAULT",
        deprecated_name=f"quota_{name}",
        help=f"Limit of {what}.",
    )


OPTIONS: list[cfg.Opt] = [
    _limit("instances", 10, "servers of a project"),
    _limit("cores", 20, "virtual CPUs of a project"),
    _limit("ram", 51200, "memory of a project's servers in MiB"),
    _limit("metadata_items", 128, "metadata items of a server"),
    _limit("injected_files", 5, "files injected into a server at its creation"),
    _limit("injected_file_content_bytes", 10240, "the size of an injected file in bytes"),
    _limit("injected_file_path_length", 255, "the length of an injected file's path"),
    _limit("key_pairs", 100, "key pairs of a user"),
    _limit("server_groups", 10, "server groups of a project"),
    _limit("server_group_members", 10, "members of a server group"),
    cfg.BoolOpt(
        "recheck_quota",
        default=True,
        help="Count again before servers are built, and take those back that are over a limit with all that were "
        "accepted before them. Only Nova's API accepts such; ours counts and records in one turn.",
    ),
]
