"""Reading the configuration again while a process runs, when it is sent SIGHUP."""

from __future__ import annotations

import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oslo_config import cfg

LOG = logging.getLogger(__name__)

Hook = Callable[[], object]


class Reload:
    """Reads the files again at each signal: options that are `mutable` change, of the others the log says so.

    `hooks` are called after that, in order and in a thread of their own; one that fails is logged and the rest goes on.
    Files that cannot be read change nothing.
    """

    def __init__(self, conf: cfg.ConfigOpts, hooks: Sequence[Hook] = ()) -> None:
        self._conf = conf
        self._hooks = hooks
        # The only kind of queue into which a signal handler may put something whatever it interrupted.
        self._asked: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="reload", daemon=True)

    def start(self) -> None:
        """Listen to the signal, from the main thread; not in a terminal's foreground, where it ends the process."""
        self._thread.start()
        if _in_foreground():
            return

        def handler(number: int, frame: FrameType | None) -> None:
            self._asked.put(True)

        signal.signal(signal.SIGHUP, handler)

    def stop(self) -> None:
        """Pass over further signals; waits for what goes on."""
        if not _in_foreground():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._asked.put(False)
        self._thread.join(timeout=10)

    def _work(self) -> None:
        while self._asked.get():
            self._reload()

    def _reload(self) -> None:
        try:
            changed = self._conf.mutate_config_files()
        except Exception:
            LOG.exception("the configuration cannot be read; it stays as it is")
            return
        names = ", ".join(sorted(f"{group or 'DEFAULT'}.{name}" for group, name in changed))
        LOG.info("configuration read again; changed: %s", names or "nothing")
        for hook in self._hooks:
            try:
                hook()
            except Exception:
                LOG.exception("after the configuration was read again, %s failed", getattr(hook, "__qualname__", hook))


def _in_foreground() -> bool:
    """Whether a terminal runs the process: there SIGHUP says that the terminal is gone."""
    try:
        return os.getpgrp() == os.tcgetpgrp(sys.stdin.fileno())
    except (OSError, ValueError, AttributeError):
        # Standard input is no terminal, or there is none.
        return False
