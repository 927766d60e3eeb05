"""Options that keystoneauth1 itself obeys, shared by every group that names another service."""

from __future__ import annotations

from typing import Any, cast

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


def adapter(service_type: str) -> list[cfg.Opt]:
    """Where the endpoint is found; versions are known to the code, not to the operator."""
    options = [
        option
        for option in loading.get_adapter_conf_options(include_deprecated=False)
        if option.dest not in ("version", "min_version", "max_version")
    ]
    cfg.set_defaults(options, valid_interfaces=["internal", "public"], service_type=service_type)
    unset = [cfg.Opt(name, type=cast(Any, _ignored)) for name in ("version", "min_version", "max_version")]
    return options + unset


def _ignored(_value: str) -> None:
    """keystoneauth1 reads these names; whatever the file says, the code's own version wins."""
