"""What another service's trouble means, for all services alike: worth waiting for, worth another try, or final.

Everybody obeys this table: flows wait for what passes until their deadline, hosts for `[kilonova] service_patience`
seconds, the API answers 503. What is final is told to the user in the service's own words.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final


class Meaning(enum.Enum):
    """`UNDONE`: passes, and the request was surely not carried out. `UNSURE`: passes, and it may have been.

    `ONCE_MORE`: the same request may get another answer in a moment, but waiting long is of no use. `FINAL`: no.
    """

    UNDONE = "undone"
    UNSURE = "unsure"
    ONCE_MORE = "once more"
    FINAL = "final"

    @property
    def passes(self) -> bool:
        return self in (Meaning.UNDONE, Meaning.UNSURE)


ANSWERS: Final[Mapping[int, Meaning]] = {
    408: Meaning.UNDONE,  # the service did not get the whole request in time
    425: Meaning.UNDONE,
    429: Meaning.UNDONE,
    500: Meaning.ONCE_MORE,  # services answer so when their database lost a race, and for ever when they are broken
    502: Meaning.UNSURE,
    503: Meaning.UNSURE,  # of a proxy without a server behind it, and of services that gave up half-way
    504: Meaning.UNSURE,
}
"""By HTTP status; every other one is final."""

REFUSED, LOST = "refused", "lost"
NOT_CONFIGURED, NO_ENDPOINT, NO_TOKEN = "not configured", "no endpoint", "no token"

SILENCE: Final[Mapping[str, Meaning]] = {
    REFUSED: Meaning.UNDONE,  # no connection: nobody listens, no route, no such name yet
    LOST: Meaning.UNSURE,  # reset, cut off or timed out after it was sent
    NO_TOKEN: Meaning.UNDONE,  # Keystone is away or busy
    NO_ENDPOINT: Meaning.FINAL,  # the catalog came, and the service is not in it
    NOT_CONFIGURED: Meaning.FINAL,  # no credentials, or Keystone does not take them
}
"""By why no answer came."""


def of_answer(status: int) -> Meaning:
    return ANSWERS.get(status, Meaning.FINAL)
