"""Tables of the API database: key pairs."""

import sqlalchemy as sa

from kilonova.db.api.tables.metadata import METADATA
from kilonova.db.columns import timestamps

KEY_PAIRS = sa.Table(
    "key_pairs",
    METADATA,
    *timestamps(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("fingerprint", sa.String(255)),
    sa.Column("public_key", sa.Text()),
    sa.Column(
        "type", sa.Enum("ssh", "x509", name="keypair_types", metadata=METADATA), nullable=False, server_default="ssh"
    ),
    sa.UniqueConstraint("user_id", "name", name="uniq_key_pairs0user_id0name"),
    mysql_charset="utf8",
)
