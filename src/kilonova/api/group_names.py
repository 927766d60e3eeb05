"""Names of security groups, remembered for a moment and for those who may see the same."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Final

from kilonova.base import clock

_MOST_PORTS: Final = 50_000


class GroupNames:
    """Names of ports' security groups, as Neutron said to a kind of caller at most ``max_age`` seconds ago.

    Neutron does not show the same to everybody: what an administrator was told of a port, its owner may not see.
    """

    def __init__(self, max_age: float, now: Callable[[], float] = clock.monotonic) -> None:
        self._max_age = max_age
        self._now = now
        self._known: OrderedDict[tuple[Hashable, str], tuple[float, list[str]]] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self, who: Hashable, ports: Sequence[str], ask: Callable[[list[str]], dict[str, list[str]]]
    ) -> dict[str, list[str]]:
        """Names by port; ``ask`` is called once, with the ports of which nothing recent is known to ``who``."""
        oldest = self._now() - self._max_age
        with self._lock:
            fresh = {
                port: names for port in ports for at, names in [self._known.get((who, port), (0.0, []))] if at > oldest
            }
        missing = [port for port in ports if port not in fresh]
        if not missing:
            return fresh
        said = ask(missing)
        now = self._now()
        with self._lock:
            for port in missing:
                self._known[who, port] = (now, said.get(port, []))
                self._known.move_to_end((who, port))
            while len(self._known) > _MOST_PORTS:
                self._known.popitem(last=False)
        return fresh | {port: said.get(port, []) for port in missing}
