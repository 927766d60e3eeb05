"""``/healthcheck``, which load balancers ask: oslo.middleware's, with its options in ``[healthcheck]``.

It says that requests are taken, and what the configured backends say: a file that an operator makes takes the service
out of the balancer's list. No token, no request id, no access line: it is asked every other second.
"""

import ipaddress
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from typing import Any, Final

from oslo_config import cfg
from oslo_middleware.healthcheck import Healthcheck, opts

from kilonova.conf import values

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
PATH: Final = "/healthcheck"
GROUP: Final = "healthcheck"


class Health:
    """An application that answers for another one. Whom ``[healthcheck]`` lets not ask is answered by that one."""

    def __init__(self, app: Wsgi, conf: cfg.ConfigOpts) -> None:
        """The options are right: see `wrong`."""
        self._app = app
        self._check = Healthcheck(app, conf)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ.get("PATH_INFO", "").rstrip("/") != PATH:
            return self._app(environ, start_response)
        answer: Iterable[bytes] = self._check(environ, start_response)
        return answer


def wrong(conf: cfg.ConfigOpts) -> Iterator[str]:
    """What is wrong with the options, a line each."""
    conf.register_opts(opts.HEALTHCHECK_OPTS, group=GROUP)
    unreadable = list(values.of(conf, GROUP, opts.HEALTHCHECK_OPTS))
    yield from unreadable or _refused(conf[GROUP].allowed_source_ranges, conf[GROUP].backends)


def _refused(ranges: list[str], backends: list[str]) -> Iterator[str]:
    for each in ranges:
        try:
            ipaddress.ip_network(each)
        except ValueError as exc:
            yield f"[{GROUP}] allowed_source_ranges: {exc}"
    known = metadata.entry_points(group=Healthcheck.NAMESPACE).names if backends else frozenset()
    for name in backends:
        if name not in known:
            yield f"[{GROUP}] backends: there is no {name}; known are {', '.join(sorted(known))}"
    if {"disable_by_file", "enable_by_files"} <= set(backends):
        yield f"[{GROUP}] backends: disable_by_file and enable_by_files are one or the other"
