"""A build request keeps its instance as one document: the columns copied from it go."""

from kilonova.db.migrations import steps

revision = "b30f573d3377"
down_revision: str | None = "d67eeaabee36"
branch_labels = None
depends_on = None

UNUSED = (
    "access_ip_v4",
    "access_ip_v6",
    "config_drive",
    "display_name",
    "image_ref",
    "info_cache",
    "instance_metadata",
    "key_name",
    "locked_by",
    "progress",
    "request_spec_id",
    "security_groups",
    "task_state",
    "user_id",
    "vm_state",
)


def upgrade() -> None:
    steps.drop_columns("build_requests", *UNUSED)
