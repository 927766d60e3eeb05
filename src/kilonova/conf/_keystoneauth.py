"""Options that keystoneauth1 itself obeys, shared by every group that names another service."""

from __future__ import annotations

from keystoneauth1 import loading
from oslo_config import cfg

GROUP: str | None = None
OPTIONS: list[cfg.Opt] = []


def session() -> list[cfg.Opt]:
    """TLS and time-out of the HTTP session."""
    return list(loading.get_session_conf_options())


def auth() -> list[cfg.Opt]:
    """Credentials; the options of the chosen plugin are registered when it is loaded."""
    return list(loading.get_auth_common_conf_options())


def credentials() -> list[cfg.Opt]:
    """What the plug-ins with passwords read, for lists: each registers its options in a group when it is loaded."""
    found: dict[str, cfg.Opt] = {}
    for plugin in ("v3password", "v2password", "password"):
        for option in loading.get_auth_plugin_conf_options(plugin):
            found.setdefault(option.dest, option)
    return list(found.values())


def adapter(service_type: str, *left_out: str) -> list[cfg.Opt]:
    """Where the endpoint is found, and what is tried again; versions are known to the code, not to the operator.

    `left_out`: options that the group has under a name of its own.
    """
    unknown = {"version", "min_version", "max_version", *left_out}
    found = loading.get_adapter_conf_options(include_deprecated=False)
    options = [option for option in found if option.dest not in unknown]
    cfg.set_defaults(options, valid_interfaces=["internal", "public"], service_type=service_type)
    return options
