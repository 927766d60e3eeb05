"""The tables of a cell database that services use. `whole` adds what is kept of older releases."""

from kilonova.db.cell.tables.actions import INSTANCE_ACTIONS, INSTANCE_ACTIONS_EVENTS, TASK_LOG
from kilonova.db.cell.tables.devices import (
    BLOCK_DEVICE_MAPPING,
    CONSOLE_AUTH_TOKENS,
    SHARE_MAPPING,
    VIRTUAL_INTERFACES,
    VOLUME_USAGE_CACHE,
)
from kilonova.db.cell.tables.hosts import COMPUTE_NODES, PCI_DEVICES, SERVICES
from kilonova.db.cell.tables.instances import (
    INSTANCE_EXTRA,
    INSTANCE_FAULTS,
    INSTANCE_ID_MAPPINGS,
    INSTANCE_INFO_CACHES,
    INSTANCE_METADATA,
    INSTANCE_SYSTEM_METADATA,
    INSTANCES,
    TAGS,
)
from kilonova.db.cell.tables.metadata import METADATA
from kilonova.db.cell.tables.migrations import MIGRATIONS
from kilonova.db.cell.tables.others import CERTIFICATES, S3_IMAGES
from kilonova.db.cell.tables.quotas import PROJECT_USER_QUOTAS, QUOTA_CLASSES, QUOTA_USAGES, QUOTAS, RESERVATIONS
from kilonova.db.cell.tables.security_groups import (
    SECURITY_GROUP_INSTANCE_ASSOCIATION,
    SECURITY_GROUP_RULES,
    SECURITY_GROUPS,
)

__all__ = [
    "BLOCK_DEVICE_MAPPING",
    "CERTIFICATES",
    "COMPUTE_NODES",
    "CONSOLE_AUTH_TOKENS",
    "INSTANCES",
    "INSTANCE_ACTIONS",
    "INSTANCE_ACTIONS_EVENTS",
    "INSTANCE_EXTRA",
    "INSTANCE_FAULTS",
    "INSTANCE_ID_MAPPINGS",
    "INSTANCE_INFO_CACHES",
    "INSTANCE_METADATA",
    "INSTANCE_SYSTEM_METADATA",
    "METADATA",
    "MIGRATIONS",
    "PCI_DEVICES",
    "PROJECT_USER_QUOTAS",
    "QUOTAS",
    "QUOTA_CLASSES",
    "QUOTA_USAGES",
    "RESERVATIONS",
    "S3_IMAGES",
    "SECURITY_GROUPS",
    "SECURITY_GROUP_INSTANCE_ASSOCIATION",
    "SECURITY_GROUP_RULES",
    "SERVICES",
    "SHARE_MAPPING",
    "TAGS",
    "TASK_LOG",
    "VIRTUAL_INTERFACES",
    "VOLUME_USAGE_CACHE",
]
