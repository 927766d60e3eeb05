"""What a filter is."""

from __future__ import annotations

import abc
from typing import ClassVar

from oslo_config import cfg

from kilonova.scheduler.request import Request
from kilonova.scheduler.snapshot.host import Host


class Filter(abc.ABC):
    """Judges one host for one request. The class's name is the one that `enabled_filters` uses."""

    once: ClassVar[bool] = False
    """One answer holds for all servers of a request: it does not depend on what the earlier ones consumed."""

    on_rebuild: ClassVar[bool] = False
    """Also asked when a server is rebuilt where it is."""

    keys: ClassVar[tuple[str, ...]] = ()
    """Keys in the metadata of aggregates by which they say something else than the configuration, or all there is."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.conf = conf

    @property
    def name(self) -> str:
        return type(self).__name__

    def applies(self, request: Request) -> bool:
        """False when no host can be objected to: the request says nothing that this filter looks at."""
        return True

    @abc.abstractmethod
    def objection(self, host: Host, request: Request) -> str | None:
        """None when the host will do, else the reason in a few words, without the host's name."""
