"""What every service process does: read the configuration, start, wait for a signal, end in order."""

from __future__ import annotations

import functools
import logging
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Protocol

from oslo_config import cfg
from oslo_log.log import LogConfigError

from kilonova import conf as configuration
from kilonova.base import log
from kilonova.base.reload import Reload
from kilonova.base.shutdown import Phase, Shutdown
from kilonova.conf import unknown

LOG = logging.getLogger(__name__)

CLOSING_SECONDS = 10
"""What running work leaves of graceful_shutdown_timeout at least."""


class Service(Protocol):
    """A part of a process. `stop` gives running work up to `timeout` seconds to end."""

    def start(self) -> None: ...

    def stop(self, timeout: float) -> object: ...


def configure(prog: str, argv: Sequence[str] | None = None) -> cfg.ConfigOpts:
    """The configuration of a process, logging included. Raises SystemExit with what is wrong with its files."""
    try:
        conf = configuration.load(sys.argv[1:] if argv is None else argv, prog)
        log.setup(conf)
    except (cfg.Error, LogConfigError) as exc:
        raise SystemExit(f"{prog}: {exc}") from exc
    _tell(conf)
    # Libraries warn about their own future on every start; an operator can do nothing about it.
    warnings.simplefilter("ignore", DeprecationWarning)
    return conf


def run(
    conf: cfg.ConfigOpts,
    services: Sequence[Service],
    closing: Sequence[Callable[[], object]] = (),
    reloading: Sequence[Callable[[], object]] = (),
) -> int:
    """Start the services in order, wait for SIGTERM or SIGINT, stop them in reverse order, then close.

    SIGHUP meanwhile: the configuration is read again, then `reloading` is called.
    Together they have [DEFAULT] graceful_shutdown_timeout seconds to stop, manager_shutdown_timeout of them for running
    work; a second signal ends the process at once.
    A service that fails to start ends the process, after those already started.
    """
    shutdown = Shutdown(conf.graceful_shutdown_timeout)
    shutdown.on_signals()
    reload = Reload(conf, [functools.partial(_tell, conf), *reloading])
    reload.start()
    started: list[Service] = []
    code = 0
    try:
        for service in services:
            service.start()
            started.append(service)
    except Exception:
        LOG.exception("%s does not start", type(service).__module__)
        code = 1
    else:
        LOG.info("ready")
        shutdown.wait()
    for service in reversed(started):
        shutdown.on(Phase.DRAIN, type(service).__module__, functools.partial(_stop, conf, service))
    for close in closing:
        shutdown.on(Phase.CLOSE, getattr(close, "__qualname__", "close"), lambda left, one=close: one())  # type: ignore[misc]
    reload.stop()
    shutdown.run()
    return code


def _stop(conf: cfg.ConfigOpts, service: Service, left: float) -> None:
    """`left`: seconds of the whole end; those for closing are not for running work."""
    whole, for_work = conf.graceful_shutdown_timeout, conf.manager_shutdown_timeout
    closing = whole - for_work if for_work <= whole else CLOSING_SECONDS
    service.stop(max(0.0, left - closing))


def _tell(conf: cfg.ConfigOpts) -> None:
    """Into the log: what of the configuration nothing obeys; with debug, every value but the secret ones."""
    unknown.warn(conf)
    if LOG.isEnabledFor(logging.DEBUG):
        conf.log_opt_values(LOG, logging.DEBUG)
