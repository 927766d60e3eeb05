"""The tables of the API database that services use. `whole` adds what is kept of older releases."""

from kilonova.db.api.tables.aggregates import AGGREGATE_HOSTS, AGGREGATE_METADATA, AGGREGATES
from kilonova.db.api.tables.cells import CELL_MAPPINGS, HOST_MAPPINGS, INSTANCE_MAPPINGS
from kilonova.db.api.tables.flavors import FLAVOR_EXTRA_SPECS, FLAVOR_PROJECTS, FLAVORS
from kilonova.db.api.tables.groups import INSTANCE_GROUP_MEMBER, INSTANCE_GROUP_POLICY, INSTANCE_GROUPS
from kilonova.db.api.tables.keypairs import KEY_PAIRS
from kilonova.db.api.tables.metadata import METADATA
from kilonova.db.api.tables.quotas import PROJECT_USER_QUOTAS, QUOTA_CLASSES, QUOTA_USAGES, QUOTAS, RESERVATIONS
from kilonova.db.api.tables.requests import BUILD_REQUESTS, REQUEST_SPECS

__all__ = [
    "AGGREGATES",
    "AGGREGATE_HOSTS",
    "AGGREGATE_METADATA",
    "BUILD_REQUESTS",
    "CELL_MAPPINGS",
    "FLAVORS",
    "FLAVOR_EXTRA_SPECS",
    "FLAVOR_PROJECTS",
    "HOST_MAPPINGS",
    "INSTANCE_GROUPS",
    "INSTANCE_GROUP_MEMBER",
    "INSTANCE_GROUP_POLICY",
    "INSTANCE_MAPPINGS",
    "KEY_PAIRS",
    "METADATA",
    "PROJECT_USER_QUOTAS",
    "QUOTAS",
    "QUOTA_CLASSES",
    "QUOTA_USAGES",
    "REQUEST_SPECS",
    "RESERVATIONS",
]
