"""Names of security groups, remembered for a moment."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

_MOST_PORTS: Final = 50_000


class GroupNames:
    """Names of ports' security groups, as Neutron said at most ``max_age`` seconds ago."""

    def __init__(self, max_age: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_age = max_age
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, list[str]]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, ports: Sequence[str], ask: Callable[[list[str]], dict[str, list[str]]]) -> dict[str, list[str]]:
        """Names by port; ``ask`` is called once, with the ports of which nothing recent is known."""
        oldest = self._clock() - self._max_age
        with self._lock:
            fresh = {port: names for port in ports for at, names in [self._known.get(port, (0.0, []))] if at > oldest}
        missing = [port for port in ports if port not in fresh]
        if not missing:
            return fresh
        said = ask(missing)
        now = self._clock()
        with self._lock:
            for port in missing:
                self._known[port] = (now, said.get(port, []))
                self._known.move_to_end(port)
            while len(self._known) > _MOST_PORTS:
                self._known.popitem(last=False)
        return fresh | {port: said.get(port, []) for port in missing}
