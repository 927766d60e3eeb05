"""A service in memory (tests/fakes) behind a port, for programs that know nothing of it."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.fakes.web import FakeService

from kilonova.clients.http import Request
from kilonova.contract import context


@contextlib.contextmanager
def served(fake: FakeService) -> Iterator[str]:
    """The URL under which the service answers."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            path, _, words = self.path.partition("?")
            size = int(self.headers.get("Content-Length") or 0)
            sent = self.rfile.read(size)
            version = (self.headers.get("OpenStack-API-Version") or "").split(" ")[-1] or None
            params = urllib.parse.parse_qsl(words)
            body = json.loads(sent) if sent else None
            reply = fake.send(
                Request(self.command, path, context.admin(), True, params=params, body=body, microversion=version)
            )
            self.send_response(reply.status)
            for name, value in {**reply.headers, "Content-Length": str(len(reply.content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.content)

        do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815 - http.server's names

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
