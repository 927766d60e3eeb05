"""Which extra of the package brings what is not installed: a compute host has the plain install."""

from __future__ import annotations

from collections.abc import Mapping

MODULES: Mapping[str, tuple[str, ...]] = {
    "control": (
        "alembic",
        "cryptography",
        "falcon",
        "jsonschema_rs",
        "keystonemiddleware",
        "memcache",
        "oslo_cache",
        "oslo_db",
        "oslo_limit",
        "oslo_middleware",
        "oslo_policy",
        "psycopg2",
        "pymemcache",
        "pymysql",
        "re2",
        "sqlalchemy",
        "stevedore",
        "waitress",
    ),
    "libvirt": ("castellan", "cursive", "libvirt", "os_brick", "os_vif", "oslo_privsep"),
    "cloud": ("openstack", "openstackclient"),
}
"""Extra: modules that it brings. One that a library of the plain install brings as well is never missing."""


def needed(module: str | None) -> str | None:
    """The extra that brings a module."""
    root = (module or "").partition(".")[0]
    return next((extra for extra, modules in MODULES.items() if root in modules), None)


def explained(exc: ModuleNotFoundError) -> str | None:
    """`needs kilonova[control]`, None for a module that none of them brings."""
    extra = needed(exc.name)
    return extra and f"needs kilonova[{extra}], which is not installed here (there is no module {exc.name})"
