"""Tables of the cell database: other tables of older releases."""

import sqlalchemy as sa

from kilonova.db.cell.tables.metadata import METADATA
from kilonova.db.columns import soft_delete, timestamps

CERTIFICATES = sa.Table(
    "certificates",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("user_id", sa.String(255)),
    sa.Column("project_id", sa.String(255)),
    sa.Column("file_name", sa.String(255)),
    sa.Index("certificates_project_id_deleted_idx", "project_id", "deleted"),
    sa.Index("certificates_user_id_deleted_idx", "user_id", "deleted"),
    mysql_charset="utf8",
)

S3_IMAGES = sa.Table(
    "s3_images",
    METADATA,
    *timestamps(),
    *soft_delete(),
    sa.Column("id", sa.Integer(), primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False),
    mysql_charset="utf8",
)
