"""Pages of lists."""

from dataclasses import dataclass

from kilonova.api import numbers
from kilonova.api.services import Services
from kilonova.wire.http.call import Call


@dataclass(frozen=True, slots=True)
class Page:
    """How many entries are wanted and after which one they start."""

    limit: int
    marker: str | None

    def full(self, entries: int) -> bool:
        """Whether as many came as a page holds, so that another page may follow."""
        return bool(self.limit) and entries == self.limit


def page(call: Call[Services]) -> Page:
    """The page that a request asks for, bounded by ``[api] max_limit``."""
    most: int = call.services.conf.api.max_limit
    text = call.last("limit")
    marker = call.last("marker")
    if text is None:
        return Page(most, marker)
    # More than any list has is as much as a page may have, as in Nova.
    return Page(min(numbers.not_negative("limit", text, most=10**numbers.LONGEST), most), marker)
