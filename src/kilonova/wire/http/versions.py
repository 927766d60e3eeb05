"""Microversion negotiation (OpenStack API-SIG, "Microversion Specification").

The standard header names the service (``OpenStack-API-Version: compute 2.53``), the older one does not
(``X-OpenStack-Nova-API-Version: 2.53``); the standard one wins, the last value of several counts.
"""

import re
from dataclasses import dataclass
from typing import Final

from kilonova.wire.http.faults import Fault

STANDARD: Final = "OpenStack-API-Version"
OLDER: Final = "X-OpenStack-Nova-API-Version"
_MOST_DIGITS: Final = 9
_FORM: Final = re.compile(r"^([1-9]\d*)\.([1-9]\d*|0)$", re.ASCII)


@dataclass(frozen=True, slots=True)
class Negotiation:
    """What the service offers: minor versions ``low`` to ``high`` of one major version."""

    service: str
    major: int
    low: int
    high: int

    def choose(self, standard: str | None, older: str | None) -> int:
        """The minor version asked for; the lowest where nothing is asked. Raises `Fault` 400 or 406."""
        wanted = self._of_service(standard) or older
        if wanted is None:
            return self.low
        wanted = wanted.strip()
        if wanted == "latest":
            return self.high
        match = _FORM.match(wanted)
        if not match:
            raise Fault(400, f"{wanted!r} is no API version: MAJOR.MINOR or latest is expected.")
        # Numbers of any length may be asked for, and Python converts not all of them.
        major, minor = (int(number[:_MOST_DIGITS]) for number in match.groups())
        if major != self.major or not self.low <= minor <= self.high:
            raise Fault(
                406,
                f"API version {wanted} is not served here;"
                f" the lowest is {self.text(self.low)}, the highest {self.text(self.high)}.",
                self._headers(wanted),
            )
        return minor

    def text(self, minor: int) -> str:
        return f"{self.major}.{minor}"

    def headers(self, minor: int) -> dict[str, str]:
        """The headers of an answer given in that version."""
        return self._headers(self.text(minor))

    def _headers(self, text: str) -> dict[str, str]:
        return {STANDARD: f"{self.service} {text}", OLDER: text, "Vary": f"{STANDARD}, {OLDER}"}

    def _of_service(self, header: str | None) -> str | None:
        found = None
        for entry in (header or "").split(","):
            words = entry.split(maxsplit=1)
            if len(words) > 1 and words[0].lower() == self.service:
                found = words[1]
        return found
