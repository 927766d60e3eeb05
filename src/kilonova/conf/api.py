"""Options of the compute API, group ``[api]``."""

from oslo_config import cfg

GROUP: str | None = "api"

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "auth_strategy",
        default="keystone",
        choices=[
            ("keystone", "Tokens are validated by Keystone."),
            ("noauth2", "A token is USER:PROJECT and believed; the user admin is administrator. For tests only."),
        ],
        help="How callers are authenticated. An option of this project.",
    ),
    cfg.IntOpt("max_limit", default=1000, min=0, help="The largest number of entries in one page of a list."),
    cfg.StrOpt(
        "compute_link_prefix",
        help="Base URL of links to this API in its answers, where clients reach it under another name.",
    ),
    cfg.BoolOpt(
        "enable_instance_password",
        default=True,
        help="Whether the answer to a server's creation contains its administrator password.",
    ),
    cfg.BoolOpt(
        "list_records_by_skipping_down_cells",
        default=True,
        help="List servers without those of cells that do not answer (true), or fail the list with 500 (false).",
    ),
]
