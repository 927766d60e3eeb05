"""What every service process does: read the configuration, start, wait for a signal, end in order."""

from __future__ import annotations

import functools
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from oslo_config import cfg
from oslo_log.log import LogConfigError

from kilonova import conf as configuration
from kilonova.base import log, starting
from kilonova.base.reload import Reload
from kilonova.base.shutdown import Phase, Shutdown
from kilonova.cmd import checks
from kilonova.cmd.one_line import explained
from kilonova.conf import unknown

if TYPE_CHECKING:
    from kilonova.cmd.assembly import Parts

LOG = logging.getLogger(__name__)

CLOSING_SECONDS = 10
"""What running work leaves of graceful_shutdown_timeout at least."""

UNREADY_SECONDS = 3.0
"""What a process has to end that has not begun to work."""

LEAVING_SECONDS = 3.0
"""After its end a process waits so long for threads that hang."""


class Service(Protocol):
    """A part of a process. `stop` gives running work up to `timeout` seconds to end; also while it starts."""

    def start(self) -> None: ...

    def stop(self, timeout: float) -> object: ...


Make = Callable[[], Sequence[Service]]


def configure(prog: str, argv: Sequence[str] | None = None, found: Sequence[checks.Check] = ()) -> cfg.ConfigOpts:
    """The configuration of a process, logging included.

    Raises SystemExit with what is wrong with it, everything at once: a line each.
    """
    try:
        conf = configuration.load(sys.argv[1:] if argv is None else argv, prog)
    except cfg.Error as exc:
        raise SystemExit(f"{prog}: {exc}") from exc
    unlogged = _logged(conf)
    if wrong := unlogged + checks.problems(conf, found):
        if not unlogged and (conf.log_file or conf.log_dir):
            for line in wrong:
                LOG.critical("%s", line)
        raise SystemExit("\n".join(f"{prog}: {line}" for line in wrong))
    _tell(conf)
    # Libraries warn about their own future on every start; an operator can do nothing about it.
    warnings.simplefilter("ignore", DeprecationWarning)
    return conf


def _logged(conf: cfg.ConfigOpts) -> list[str]:
    """Open the log; why that is not possible."""
    try:
        log.setup(conf)
    except (cfg.Error, LogConfigError, OSError) as exc:
        return [str(exc)]
    return []


def serve(parts: Parts, make: Make) -> int:
    """Run a program's services to their end; the exit code. The process ends soon after, whatever hangs in it."""
    code = run(parts.conf, make, [parts.close], [parts.reload])
    threading.Thread(target=_leave, args=(code,), name="leave", daemon=True).start()
    return code


def _leave(code: int) -> None:
    """Python waits at its end for every thread of a pool: some may wait for a bus or database without end."""
    time.sleep(LEAVING_SECONDS)
    logging.shutdown()
    os._exit(code)


def run(
    conf: cfg.ConfigOpts,
    make: Make,
    closing: Sequence[Callable[[], object]] = (),
    reloading: Sequence[Callable[[], object]] = (),
) -> int:
    """Make and start the services in order, wait for SIGTERM or SIGINT, stop them in reverse order, then close.

    SIGHUP meanwhile: the configuration is read again, then `reloading` is called.
    Together they have [DEFAULT] graceful_shutdown_timeout seconds to stop, manager_shutdown_timeout of them for running
    work; a second signal ends the process at once. A signal while they start ends them within seconds, whatever they
    wait for. A service that fails to start ends the process, after those already started.
    """
    shutdown = Shutdown(conf.graceful_shutdown_timeout)
    shutdown.on_signals()
    reload = Reload(conf, [functools.partial(_tell, conf), *reloading])
    reload.start()
    start = _Start(make)
    start.thread.start()
    while not start.over.wait(0.05) and not shutdown.requested.is_set():
        continue
    code = 0
    if start.error is not None:
        code = 1
    elif start.over.is_set():
        LOG.info("ready")
        shutdown.wait()
    else:
        LOG.info("asked to end while starting")
        start.given_up = True
        shutdown.timeout = min(shutdown.timeout, UNREADY_SECONDS)
    for service in reversed(start.begun):
        shutdown.on(Phase.DRAIN, type(service).__module__, functools.partial(_stop, conf, service))
    for close in closing:
        shutdown.on(Phase.CLOSE, getattr(close, "__qualname__", "close"), lambda left, one=close: one())  # type: ignore[misc]
    reload.stop()
    shutdown.run()
    return code


class _Start:
    """The start of services, in a thread of its own: the main thread hears signals meanwhile."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self.begun: list[Service] = []
        """Those that run, and the one that starts."""
        self.error: BaseException | None = None
        self.over = threading.Event()
        self.given_up = False
        self.thread = threading.Thread(target=self._run, name="start", daemon=True)

    def _run(self) -> None:
        what = "the process"
        try:
            with starting.undisturbed():
                services = self._make()
            for service in services:
                if self.given_up:
                    return
                what = type(service).__module__
                self.begun.append(service)
                service.start()
        except BaseException as exc:  # noqa: BLE001 - whatever it is, the process does not run
            if not self.given_up:
                complain(what, exc)
                self.begun = self.begun[:-1]
            self.error = exc
        finally:
            self.over.set()


def complain(what: str, exc: BaseException) -> None:
    """One line where the words say all."""
    line = explained(exc)
    LOG.critical("%s does not start: %s", what, line or exc, exc_info=None if line else exc)


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
