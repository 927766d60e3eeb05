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
    cfg.BoolOpt(
        "instance_list_per_project_cells",
        default=False,
        help="Whether a list that is not an administrator's asks only the cells in which the project has servers. "
        "That saves questions where there are many cells and projects are in few of them.",
    ),
    cfg.StrOpt(
        "instance_list_cells_batch_strategy",
        default="distributed",
        choices=[
            ("distributed", "The page's length divided among the cells, and a tenth more."),
            ("fixed", "As many as instance_list_cells_batch_fixed_size says."),
        ],
        help="How many servers a list asks of each cell at a time; a cell whose servers are all on the page is asked "
        "for more. One cell alone is asked for the whole page.",
    ),
    cfg.IntOpt(
        "instance_list_cells_batch_fixed_size",
        default=100,
        min=100,
        help="Servers that a list asks of each cell at a time where the strategy is `fixed`.",
    ),
]
