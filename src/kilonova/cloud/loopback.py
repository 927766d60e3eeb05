"""HTTP to services of this cloud: never by a proxy, which would be told passwords and could not reach them anyway."""

from __future__ import annotations

import urllib.request
from typing import Any


def opened(request: urllib.request.Request | str, timeout: float) -> Any:
    """The answer, to be used in a `with`. Errors are those of `urllib.request.urlopen`."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=timeout)
