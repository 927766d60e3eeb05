"""Tables of our own, beside Nova's in the API database and in every cell: the flows and their log.

Times are milliseconds since 1970-01-01 UTC. The columns are documented in flow/store.py.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

METADATA = sa.MetaData()
"""All tables of our own add themselves to it; own_tables.py has them all."""

_LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
_LONG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

KN_FLOW = sa.Table(
    "kn_flow",
    METADATA,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("op", sa.String(64), nullable=False),
    sa.Column("subject_id", sa.String(36), nullable=False),
    sa.Column("active_key", sa.String(128), nullable=True),
    sa.Column("parent_id", sa.String(36), nullable=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("position", sa.String(64), nullable=True),
    sa.Column("frame", _LONG_TEXT, nullable=False),
    sa.Column("sealed", _LONG_TEXT, nullable=True),
    sa.Column("reason", sa.Text(), nullable=True),
    sa.Column("tries", sa.Integer(), nullable=False),
    sa.Column("code_version", sa.Integer(), nullable=False),
    sa.Column("lease_owner", sa.String(255), nullable=True),
    sa.Column("lease_epoch", sa.BigInteger(), nullable=False),
    sa.Column("lease_until", sa.BigInteger(), nullable=False),
    sa.Column("wake_at", sa.BigInteger(), nullable=False),
    sa.Column("deadline_at", sa.BigInteger(), nullable=True),
    sa.Column("request_id", sa.String(64), nullable=True),
    sa.Column("project_id", sa.String(255), nullable=True),
    sa.Column("created_at", sa.BigInteger(), nullable=False),
    sa.Column("updated_at", sa.BigInteger(), nullable=False),
    sa.Column("ended_at", sa.BigInteger(), nullable=True),
    sa.UniqueConstraint("active_key", name="kn_flow_active_key"),
    sa.Index("kn_flow_state_wake_at", "state", "wake_at"),
    sa.Index("kn_flow_subject_id", "subject_id"),
    sa.Index("kn_flow_parent_id", "parent_id"),
    sa.Index("kn_flow_ended_at", "ended_at"),
    mysql_charset="utf8mb4",
)

KN_FLOW_EVENT = sa.Table(
    "kn_flow_event",
    METADATA,
    sa.Column("id", _LONG_ID, primary_key=True, autoincrement=True),
    sa.Column("flow_id", sa.String(36), nullable=False),
    sa.Column("at", sa.BigInteger(), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("step", sa.String(64), nullable=True),
    sa.Column("tries", sa.Integer(), nullable=False),
    sa.Column("duration_ms", sa.BigInteger(), nullable=True),
    sa.Column("worker", sa.String(255), nullable=True),
    sa.Column("epoch", sa.BigInteger(), nullable=False),
    sa.Column("detail", sa.Text(), nullable=True),
    sa.Index("kn_flow_event_flow_id", "flow_id"),
    mysql_charset="utf8mb4",
)
