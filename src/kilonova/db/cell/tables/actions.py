"""Tables of the cell database: what was done to instances."""

import sqlalchemy as sa

from kilonova.base import clock
from kilonova.db.cell.tables.metadata import METADATA
from kilonova.db.columns import soft_delete, timestamps

INSTANCE_ACTIONS = sa.Table(
    "instance_actions",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("action", sa.String(255)),
    sa.Column("instance_uuid", sa.String(36)),
    sa.Column("request_id", sa.String(255)),
    sa.Column("user_id", sa.String(255)),
    sa.Column("project_id", sa.String(255)),
    sa.Column("start_time", sa.DateTime(), default=clock.naive_now),
    sa.Column("finish_time", sa.DateTime()),
    sa.Column("message", sa.String(255)),
    sa.ForeignKeyConstraint(["instance_uuid"], ["instances.uuid"], name="fk_instance_actions_instance_uuid"),
    sa.Index("instance_actions_instance_uuid_updated_at_idx", "instance_uuid", "updated_at"),
    sa.Index("instance_uuid_idx", "instance_uuid"),
    sa.Index("request_id_idx", "request_id"),
    mysql_charset="utf8",
)

INSTANCE_ACTIONS_EVENTS = sa.Table(
    "instance_actions_events",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("event", sa.String(255)),
    sa.Column("action_id", sa.Integer()),
    sa.Column("start_time", sa.DateTime(), default=clock.naive_now),
    sa.Column("finish_time", sa.DateTime()),
    sa.Column("result", sa.String(255)),
    sa.Column("traceback", sa.Text()),
    sa.Column("host", sa.String(255)),
    sa.Column("details", sa.Text()),
    sa.ForeignKeyConstraint(["action_id"], ["instance_actions.id"]),
    mysql_charset="utf8",
)

TASK_LOG = sa.Table(
    "task_log",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("task_name", sa.String(255), nullable=False),
    sa.Column("state", sa.String(255), nullable=False),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("period_beginning", sa.DateTime(), nullable=False, default=clock.naive_now),
    sa.Column("period_ending", sa.DateTime(), nullable=False, default=clock.naive_now),
    sa.Column("message", sa.String(255), nullable=False),
    sa.Column("task_items", sa.Integer(), default=0),
    sa.Column("errors", sa.Integer(), default=0),
    sa.UniqueConstraint(
        "task_name",
        "host",
        "period_beginning",
        "period_ending",
        name="uniq_task_log0task_name0host0period_beginning0period_ending",
    ),
    sa.Index("ix_task_log_host", "host"),
    sa.Index("ix_task_log_period_beginning", "period_beginning"),
    sa.Index("ix_task_log_period_ending", "period_ending"),
    mysql_charset="utf8",
)
