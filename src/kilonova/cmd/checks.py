"""What of a configuration keeps a program from its work, found before it starts: a line for each."""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence

from oslo_config import cfg

from kilonova.conf import values
from kilonova.contract import exceptions

Check = Callable[[cfg.ConfigOpts], Iterable[str]]


def problems(conf: cfg.ConfigOpts, checks: Sequence[Check] = ()) -> list[str]:
    """Wrong values, and what the checks find as far as they can read what they look at."""
    found = list(values.wrong(conf))
    for check in checks:
        try:
            found += check(conf)
        except cfg.Error:
            # A value that it needs is one of the wrong ones.
            continue
    # Of a section with credentials for several services each of these says the same.
    return list(dict.fromkeys(found))


def api_database(conf: cfg.ConfigOpts) -> Iterator[str]:
    return _connection(conf, "api_database")


def cell_database(conf: cfg.ConfigOpts) -> Iterator[str]:
    return _connection(conf, "database")


def _connection(conf: cfg.ConfigOpts, group: str) -> Iterator[str]:
    if not conf[group].connection:
        yield f"[{group}] connection is not set: the URL of the database, mysql+pymysql://user:password@host/name"
        return
    from kilonova.db import urls

    if not urls.readable(conf[group].connection):
        yield f"[{group}] connection: it is not the URL of a database, as in mysql+pymysql://user:password@host/name"


def filters(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Each name of a filter or weigher that there is not."""
    from kilonova.scheduler import plugins

    for option, look in (("enabled_filters", plugins.filters), ("weight_classes", plugins.weighers)):
        try:
            look(conf)
        except exceptions.NovaException as exc:
            yield f"[filter_scheduler] {option}: {exc}"


def driver(conf: cfg.ConfigOpts) -> Iterator[str]:
    from kilonova.virt import loader

    try:
        yield from loader.named(conf).wrong(conf)
    except exceptions.NovaException as exc:
        yield str(exc)


def bus(conf: cfg.ConfigOpts) -> Iterator[str]:
    from kilonova.wire.rpc import bus

    return bus.wrong(conf)


def health(conf: cfg.ConfigOpts) -> Iterator[str]:
    from kilonova.wire.http import health

    return health.wrong(conf)


def policy(conf: cfg.ConfigOpts) -> Iterator[str]:
    from kilonova.contract import policies
    from kilonova.wire.http.policy import Enforcer

    try:
        Enforcer(conf, policies.RULES).load()
    except exceptions.InvalidConfiguration as exc:
        yield str(exc)


def vendordata(conf: cfg.ConfigOpts) -> Iterator[str]:
    from kilonova.metadata import vendordata

    try:
        vendordata.load(conf)
    except exceptions.InvalidConfiguration as exc:
        yield str(exc)


def state(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Each directory of a host that cannot be made or written. A full disk is none of these: room can be made."""
    from kilonova.cmd import assembly

    for path in assembly.directories(conf).values():
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            yield f"[DEFAULT] state_path: {path} cannot be written: {exc.strerror or exc}"
        else:
            if not os.access(path, os.W_OK | os.X_OK):
                yield f"[DEFAULT] state_path: {path} cannot be written"


def tokens(conf: cfg.ConfigOpts) -> Iterable[str]:
    """Credentials that validate the tokens of users, where these have some."""
    from kilonova.clients.keystone import credentials

    return () if conf.api.auth_strategy == "noauth2" else credentials.validating(conf)


def _credentials(groups: Sequence[str], needed: Sequence[str], conf: cfg.ConfigOpts) -> Iterator[str]:
    from kilonova.clients.keystone import credentials

    return credentials.wrong(conf, groups, needed)


def credentials(*groups: str, needed: Sequence[str] = ()) -> Check:
    """Credentials for these services; only those for `needed` ones have to be there, as in Nova."""
    return functools.partial(_credentials, groups, needed)


def api_port(conf: cfg.ConfigOpts) -> Iterator[str]:
    return _port("osapi_compute_listen", conf.osapi_compute_listen, conf.osapi_compute_listen_port)


def metadata_port(conf: cfg.ConfigOpts) -> Iterator[str]:
    return _port("metadata_listen", conf.metadata_listen, conf.metadata_listen_port)


def _port(option: str, host: str, port: int) -> Iterator[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as exc:
        yield f"[DEFAULT] {option}, {option}_port: {host}:{port} cannot be listened on: {exc.strerror or exc}"


_NEEDED = ("placement",)
_SERVICES = ("placement", "neutron", "cinder", "service_user")

API_UNDER_WSGI: tuple[Check, ...] = (
    api_database,
    bus,
    health,
    policy,
    tokens,
    credentials(*_SERVICES, "keystone"),
)
METADATA_UNDER_WSGI: tuple[Check, ...] = (api_database, health, vendordata, credentials("neutron", "service_user"))
API: tuple[Check, ...] = (*API_UNDER_WSGI, api_port)
METADATA: tuple[Check, ...] = (*METADATA_UNDER_WSGI, metadata_port)
SCHEDULER: tuple[Check, ...] = (
    api_database,
    cell_database,
    bus,
    filters,
    credentials("placement", "neutron", "service_user", needed=_NEEDED),
)
CONDUCTOR: tuple[Check, ...] = (cell_database, bus, credentials(*_SERVICES, needed=_NEEDED))
COMPUTE: tuple[Check, ...] = (bus, driver, state, vendordata, credentials(*_SERVICES, needed=_NEEDED))
WHOLE: tuple[Check, ...] = tuple(dict.fromkeys((*API, *METADATA, *SCHEDULER, *CONDUCTOR, *COMPUTE)))
