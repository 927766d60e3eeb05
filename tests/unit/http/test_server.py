"""The built-in server: a service of one process."""

import threading
import urllib.request
from collections.abc import Iterable
from typing import Any

from kilonova.wire.http.server import serve


def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [threading.current_thread().name.encode()]


def test_it_serves_from_threads_and_stops() -> None:
    service = serve(app, "127.0.0.1", 0, threads=2)
    service.start()
    url = f"http://127.0.0.1:{service.port}/"
    with urllib.request.urlopen(url, timeout=5) as answer:
        assert answer.status == 200
        assert b"MainThread" not in answer.read()
    service.stop()
    service.wait()
    try:
        urllib.request.urlopen(url, timeout=2)
    except OSError:
        return
    raise AssertionError("still answering")
