"""An application that any WSGI server finds by its name in the module, and that is made in the process that serves.

Servers take the name out of the module's dictionary, some of them in a parent that forks afterwards. Connections and
threads do not survive a fork, so the application is made at the first request of each process. What is wrong with the
configuration is said when the server loads the module.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kilonova.cmd.assembly import Parts
    from kilonova.cmd.checks import Check

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_SERVERS: Final = ("gunicorn", "mod_wsgi", "uwsgi")
"""Modules that are there in a process of such a server."""

_NOT_LOADABLE: Final = 4
"""The exit code with which gunicorn's workers say so; after any other it starts one worker after the other."""

_UNAVAILABLE: Final = b'{"serviceUnavailable": {"code": 503, "message": "The service does not start; see its log."}}'


class Application:
    """`make` puts it together of the process's parts; `program` is its name in messages."""

    def __init__(self, program: str, make: Callable[[Parts], Wsgi], checks: Callable[[], Sequence[Check]]) -> None:
        self._program, self._make, self._checks = program, make, checks
        self._lock = threading.Lock()
        self._process: int | None = None
        self._made: Wsgi | None = None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        made = self._made if self._process == os.getpid() else self._of_this_process()
        if made is None:
            headers = [("Content-Type", "application/json"), ("Content-Length", str(len(_UNAVAILABLE)))]
            start_response("503 Service Unavailable", [*headers, ("Retry-After", "10")])
            return [_UNAVAILABLE]
        return made(environ, start_response)

    def check(self) -> None:
        """Read the configuration if a server loads us. Raises SystemExit, after saying what is wrong."""
        if not any(name in sys.modules for name in _SERVERS):
            return
        try:
            if not _threads_run(sys.modules.get("uwsgi")):
                raise SystemExit(f"{self._program}: uWSGI must run with enable-threads = true")
            self._parts()
        except SystemExit as exc:
            sys.stderr.write(f"{exc.code}\n")
            raise SystemExit(_NOT_LOADABLE) from exc

    def _parts(self) -> Parts:
        from kilonova.cmd import assembly, process
        from kilonova.wsgi import files

        return assembly.Parts(process.configure(self._program, files.arguments(), self._checks()))

    def _of_this_process(self) -> Wsgi | None:
        """Made by the first request; None where that is not possible, and the next request tries again."""
        from kilonova.base import starting
        from kilonova.cmd import process

        with self._lock:
            if self._process != os.getpid():
                try:
                    with starting.undisturbed():
                        self._made = self._make(self._parts())
                except (Exception, SystemExit) as exc:  # noqa: BLE001 - it is told, and the next request tries again
                    process.complain(self._program, exc)
                    return None
                self._process = os.getpid()
            return self._made


def _threads_run(uwsgi: Any) -> bool:
    """uWSGI starts no threads of Python's unless it is told to: whatever asks several cells would wait for ever."""
    options = {name.decode() if isinstance(name, bytes) else name for name in getattr(uwsgi, "opt", ())}
    return uwsgi is None or bool(options & {"enable-threads", "threads"})
