"""Standard sentences of HTTP errors that say nothing more: programs written for this API compare them (webob's)."""

from collections.abc import Mapping
from typing import Final

SENTENCES: Final[Mapping[int, str]] = {
    400: "The server could not comply with the request since\r\nit is either malformed or otherwise incorrect.\r\n",
    404: "The resource could not be found.",
    405: "The method is not allowed for this resource.",
    410: "This resource is no longer available.  No forwarding address is given.",
}
