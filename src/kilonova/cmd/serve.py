"""kilonova serve: API, metadata, scheduler, conductor and compute in one process."""

import sys
from collections.abc import Sequence

from kilonova.base import clock, starting
from kilonova.cmd import assembly, checks, process


class Whole:
    """All services as one; those that are needed start first and stop last."""

    def __init__(self, parts: assembly.Parts) -> None:
        self._parts = parts
        self._running: list[process.Service] = []

    def start(self) -> None:
        """Raises what the first service raises that does not start; those before it are stopped."""
        try:
            with starting.undisturbed():
                self._start()
        except BaseException:
            self.stop(self._parts.conf.graceful_shutdown_timeout)
            raise

    def _start(self) -> None:
        for make in assembly.whole(self._parts):
            for service in make():
                # Before it runs: one that waits for others while it starts can be stopped, too.
                self._running.append(service)
                service.start()

    def stop(self, timeout: float) -> None:
        end = clock.monotonic() + timeout
        while self._running:
            self._running.pop().stop(max(0.0, end - clock.monotonic()))


def main(argv: Sequence[str] | None = None) -> int:
    parts = assembly.Parts(process.configure("kilonova serve", argv, checks.WHOLE))
    return process.serve(parts, lambda: [Whole(parts)])


if __name__ == "__main__":
    sys.exit(main())
