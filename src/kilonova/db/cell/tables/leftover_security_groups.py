"""Tables of the cell database: security groups of older releases, kept because the schema is Nova's."""

import sqlalchemy as sa

from kilonova.db.cell.tables.metadata import METADATA
from kilonova.db.columns import INET, soft_delete, timestamps

SECURITY_GROUP_DEFAULT_RULES = sa.Table(
    "security_group_default_rules",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("protocol", sa.String(5)),
    sa.Column("from_port", sa.Integer()),
    sa.Column("to_port", sa.Integer()),
    sa.Column("cidr", INET),
    mysql_charset="utf8",
)
