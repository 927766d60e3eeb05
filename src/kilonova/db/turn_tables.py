"""Tables of our own that settle who comes first, beside those of the flows; only those of the API database are in use.

Times are milliseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

import sqlalchemy as sa

from kilonova.db.flow_tables import METADATA

__all__ = ["KN_GROUP_HOST", "KN_LOOP", "KN_TURN", "METADATA"]

KN_TURN = sa.Table(
    "kn_turn",
    METADATA,
    # What is counted against a limit: a project, a user. Longer names than Nova's columns take do not occur.
    sa.Column("scope", sa.String(300), primary_key=True),
    # What was ever taken, from the time on at which the row was made, never given back: the difference between two
    # looks is what was taken in between.
    sa.Column("instances", sa.BigInteger(), nullable=False),
    sa.Column("cores", sa.BigInteger(), nullable=False),
    sa.Column("ram", sa.BigInteger(), nullable=False),
    sa.Column("updated_at", sa.BigInteger(), nullable=False),
    sa.Index("kn_turn_updated_at", "updated_at"),
    mysql_charset="utf8mb4",
)

KN_GROUP_HOST = sa.Table(
    "kn_group_host",
    METADATA,
    sa.Column("instance_uuid", sa.String(36), primary_key=True),
    sa.Column("group_uuid", sa.String(36), nullable=False),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("updated_at", sa.BigInteger(), nullable=False),
    sa.Index("kn_group_host_group_uuid", "group_uuid"),
    sa.Index("kn_group_host_updated_at", "updated_at"),
    mysql_charset="utf8mb4",
)

KN_LOOP = sa.Table(
    "kn_loop",
    METADATA,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("owner", sa.String(255), nullable=True),
    sa.Column("lease_until", sa.BigInteger(), nullable=False),
    # Where the next slice begins.
    sa.Column("place", sa.String(255), nullable=True),
    mysql_charset="utf8mb4",
)
