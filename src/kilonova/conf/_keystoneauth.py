"""Options that keystoneauth1 itself obeys, shared by every group that names another service.

The library can list them, but brings its HTTP stack along: a tenth of the time that a service takes to start. They are
data here, and a test compares them with the library's.
"""

from __future__ import annotations

from oslo_config import cfg

GROUP: str | None = None
OPTIONS: list[cfg.Opt] = []


def session() -> list[cfg.Opt]:
    """TLS and time-out of the HTTP session."""
    return [
        cfg.StrOpt("cafile", help="File with the certificate authorities (PEM) that the service's certificate needs."),
        cfg.StrOpt("certfile", help="File with our own certificate (PEM)."),
        cfg.StrOpt("keyfile", help="File with the key (PEM) of our own certificate."),
        cfg.BoolOpt("insecure", default=False, help="Accept any certificate of the service."),
        cfg.FloatOpt("timeout", help="Seconds to wait for an answer."),
        cfg.BoolOpt("collect-timing", default=False, help="Keep how long each request took."),
        cfg.BoolOpt("split-loggers", default=False, help="Log requests, answers and their bodies under several names."),
        cfg.StrOpt("tls-ciphers", help="Ciphers that TLS may use, as OpenSSL writes them. Default: OpenSSL's own."),
        cfg.StrOpt(
            "tls-min-version",
            choices=[None, "1.2", "1.3"],
            help="Oldest version of TLS that is spoken. Default: what the system allows.",
        ),
    ]


def auth() -> list[cfg.Opt]:
    """Credentials; the options of the chosen plugin are registered when it is loaded."""
    return [
        cfg.Opt(
            "auth_type",
            type=str,  # type: ignore[arg-type]  # the library makes it so
            deprecated_opts=[cfg.DeprecatedOpt("auth_plugin")],
            help="Kind of credentials, a plug-in of keystoneauth1 such as password.",
        ),
        cfg.Opt(
            "auth_section",
            type=str,  # type: ignore[arg-type]
            help="Another group of this file that holds the credentials.",
        ),
    ]


def credentials() -> list[cfg.Opt]:
    """What the plug-ins with passwords read, for lists: each registers its options in a group when it is loaded."""
    from keystoneauth1 import loading

    found: dict[str, cfg.Opt] = {}
    for plugin in ("v3password", "v2password", "password"):
        for option in loading.get_auth_plugin_conf_options(plugin):
            found.setdefault(option.dest, option)
    return list(found.values())


def adapter(service_type: str, *left_out: str) -> list[cfg.Opt]:
    """Where the endpoint is found, and what is tried again; versions are known to the code, not to the operator.

    `left_out`: options that the group has under a name of its own.
    """
    options = [
        cfg.StrOpt("service-type", default=service_type, help="Type of the service in Keystone's catalog."),
        cfg.StrOpt("service-name", help="Name of the service in Keystone's catalog, where several have its type."),
        cfg.ListOpt(
            "valid-interfaces",
            default=["internal", "public"],
            help="Interfaces of the catalog that will do for the endpoint, best first.",
        ),
        cfg.StrOpt("region-name", help="Region of the endpoint in the catalog."),
        cfg.StrOpt("endpoint-override", help="URL of the service, without a version, instead of the catalog's."),
        cfg.IntOpt("connect-retries", help="How many times a connection that failed is tried again."),
        cfg.FloatOpt(
            "connect-retry-delay",
            help="Seconds before a failed connection is tried again. Default: 0.5, doubled each time up to 60.",
        ),
        cfg.IntOpt("status-code-retries", help="How many times a request is sent again whose answer may pass."),
        cfg.FloatOpt(
            "status-code-retry-delay",
            help="Seconds before a request is sent again for its answer. Default: 0.5, doubled each time up to 60.",
        ),
        cfg.ListOpt(
            "retriable-status-codes",
            item_type=cfg.types.Integer(),
            help="Status codes for which a request is sent again. Default: 503.",
        ),
    ]
    return [option for option in options if option.dest not in left_out]
