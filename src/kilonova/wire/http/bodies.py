"""The body of a request, of which the server may or may not know where it ends."""

import falcon

from kilonova.wire.http.faults import Fault


def read(req: falcon.Request, most: int) -> bytes:
    """At most ``most`` bytes. Raises `Fault` 411, 413.

    Servers that undo the chunks of a body say `wsgi.input_terminated`; elsewhere nothing can be read that is surely the
    body and all of it.
    """
    length = req.content_length
    if (length or 0) > most:
        raise Fault(413, f"Request is too large: more than {most} bytes.")
    if length is not None:
        raw = req.bounded_stream.read(length)
    elif not req.get_header("Transfer-Encoding"):
        return b""
    elif req.env.get("wsgi.input_terminated"):
        raw = req.stream.read(most + 1)
    else:
        raise Fault(411, "A body needs a Content-Length here.")
    if len(raw) > most:
        raise Fault(413, f"Request is too large: more than {most} bytes.")
    return bytes(raw)
