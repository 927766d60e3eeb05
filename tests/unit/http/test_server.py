"""The built-in server: a service of one process, which strangers can neither stop nor confuse."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from kilonova.wire.http.connections import Limits
from kilonova.wire.http.server import Service, plain, serve

SHORT = Limits(header=4096, body=4096, header_seconds=1.0, body_seconds=1.5, idle_seconds=2.0, connections=40)


class App:
    """Answers with what it got; a path `/wait` holds its thread until `go`."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, bytes]] = []
        self.go = threading.Event()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        body = environ["wsgi.input"].read()
        self.seen.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], body))
        if environ["PATH_INFO"] == "/wait":
            self.go.wait(20)
        said = threading.current_thread().name.encode() + b" " + body
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(said)))])
        return [said]


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def server(app: App) -> Iterator[Service]:
    service = serve(app, "127.0.0.1", 0, threads=2, limits=SHORT)
    service.start()
    yield service
    app.go.set()
    service.stop(5)


def connect(server: Service) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=10)


def answer_to(server: Service, *parts: bytes, pause: float = 0.0) -> bytes:
    """All that comes until the server closes the connection."""
    with connect(server) as client:
        for part in parts:
            client.sendall(part)
            time.sleep(pause)
        return all_of(client)


def all_of(client: socket.socket) -> bytes:
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while data := client.recv(65536):
            got += data
    return got


def get(server: Service, path: str = "/", timeout: float = 5) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=timeout) as answer:
        return bytes(answer.read())


def test_it_serves_from_threads_and_stops(server: Service) -> None:
    assert b"MainThread" not in get(server)
    server.stop(5)
    server.wait()
    with pytest.raises(OSError):
        get(server)


def test_a_taken_port_is_said_at_the_start(server: Service, app: App) -> None:
    second = serve(app, "127.0.0.1", server.port, threads=1)
    with pytest.raises(OSError, match="in use"):
        second.start()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: h\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    ],
    ids=["silent", "half a header", "no body", "half a chunk"],
)
def test_d2_clients_that_say_nothing_more_hold_no_thread(server: Service, sent: bytes) -> None:
    with contextlib.ExitStack() as kept:
        for _ in range(30):
            kept.enter_context(connect(server)).sendall(sent)
        began = time.monotonic()
        assert get(server)
        assert time.monotonic() - began < 1.0


@pytest.mark.parametrize(
    ("sent", "after"),
    [
        (b"GET / HTTP/1.1\r\nHost: h\r\n", SHORT.header_seconds),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n{", SHORT.body_seconds),
    ],
)
def test_d2_what_does_not_come_in_time_is_408_and_closed(server: Service, sent: bytes, after: float) -> None:
    began = time.monotonic()
    got = answer_to(server, sent)
    assert got.startswith(b"HTTP/1.0 408 ")
    assert json.loads(got.partition(b"\r\n\r\n")[2])["computeFault"]["code"] == 408
    assert after <= time.monotonic() - began < after + 4


def test_d2_a_byte_now_and_then_does_not_prolong_it(server: Service) -> None:
    with connect(server) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: h\r\nX-Slow: ")
        began = time.monotonic()
        client.settimeout(0.1)
        got = b""
        while not got and time.monotonic() - began < 8:
            with contextlib.suppress(TimeoutError):
                client.sendall(b"a")
                got = client.recv(100)
        assert got.startswith(b"HTTP/1.0 408 ")


@pytest.mark.parametrize("sent", [b"", b"\r\n"], ids=["silent", "blank lines"])
def test_d2_who_asks_nothing_is_parted_with(server: Service, sent: bytes) -> None:
    with connect(server) as client:
        began = time.monotonic()
        client.settimeout(0.2)
        while time.monotonic() - began < 10:
            try:
                client.sendall(sent)
                if client.recv(10) == b"":
                    return
            except TimeoutError:
                continue
            except OSError:
                return
    raise AssertionError("still connected")


def test_d2_the_one_goes_that_has_waited_longest_when_there_is_no_room(server: Service, app: App) -> None:
    with contextlib.ExitStack() as kept:
        busy = kept.enter_context(connect(server))
        busy.sendall(b"GET /wait HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        until(lambda: bool(app.seen))
        clients = [kept.enter_context(connect(server)) for _ in range(SHORT.connections + 10)]
        assert get(server)
        assert clients[0].recv(10) == b""
        app.go.set()
        assert all_of(busy).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("line", [b"X-Long: " + b"a" * 200_000, b"X: a\r\n" * 20_000])
def test_d2_a_header_without_end_is_431_and_closed(server: Service, line: bytes) -> None:
    got = answer_to(server, b"GET / HTTP/1.1\r\nHost: h\r\n" + line[:8000])
    assert got.startswith(b"HTTP/1.0 431 ")
    with connect(server) as client, contextlib.suppress(OSError):
        client.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n" + line)
        assert all_of(client)[:12] in (b"", b"HTTP/1.0 431")
    assert get(server)


def test_d2_a_body_beyond_the_bound_is_413(server: Service, app: App) -> None:
    head = b"POST / HTTP/1.1\r\nHost: h\r\n"
    assert answer_to(server, head + b"Content-Length: 999999999\r\n\r\n").startswith(b"HTTP/1.1 413 ")
    chunk = b"400\r\n" + b"a" * 1024 + b"\r\n"
    assert answer_to(server, head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 5).startswith(b"HTTP/1.1 413 ")
    assert app.seen == []


def test_d11_a_body_in_chunks_is_read_whole_and_nothing_of_it_is_another_request(server: Service, app: App) -> None:
    got = answer_to(
        server,
        b"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\n{GET \r\n1",
        b"2\r\n/b HTTP/1.1\r\n\r\naaa\r\n0\r\n\r\n",
        b"GET /c HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
        pause=0.05,
    )
    assert [(method, path) for method, path, _ in app.seen] == [("POST", "/a"), ("GET", "/c")]
    assert app.seen[0][2] == b"{GET /b HTTP/1.1\r\n\r\naaa"
    assert got.count(b"HTTP/1.1 200 ") == 2


SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 0\r\nContent-Length: %d" % len(SMUGGLED),
        b"Content-Length: 5, 5",
        b"Content-Length: +0",
        b"Content-Length: 0_0",
        b"Content-Length: " + b"9" * 3000,
        b"Content-Length: 0\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 0",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        b"Transfer-Encoding: chunked, chunked",
        b"Transfer-Encoding: \x0bchunked",
        b"Transfer-Encoding : chunked",
        b"Transfer-Encoding: gzip",
        b"Host: other",
        b"X: a\rb",
        b" folded",
    ],
    ids=lambda framing: framing[:30].decode("latin-1"),
)
def test_framing_headers_sent_twice_or_readable_in_two_ways_are_refused_and_the_connection_closed(
    server: Service, app: App, framing: bytes
) -> None:
    got = answer_to(server, b"POST /a HTTP/1.1\r\nHost: h\r\n" + framing + b"\r\n\r\n" + SMUGGLED)
    assert got[9:12] in (b"400", b"501")
    assert got.count(b"HTTP/1.") == 1
    assert app.seen == []


@pytest.mark.parametrize("size", [b"zz", b"-1", b"0x5", b"5_0", b"", b" 5", b"+5", b"5 ; a", b"f" * 5000])
def test_d12_a_broken_chunk_size_is_400(server: Service, app: App, size: bytes) -> None:
    head = b"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    got = answer_to(server, head + size + b"\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")
    assert got[9:12] in (b"400", b"413")
    assert app.seen == []


def test_d11_chunks_in_an_older_protocol_are_refused(server: Service, app: App) -> None:
    head = b"POST /a HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert answer_to(server, head + SMUGGLED)[9:12] == b"400"
    assert app.seen == []


@pytest.mark.parametrize("line", [b"GET http://[::/ HTTP/1.1", b"GET", b"\x00\x01", b"GET / HTTP/9", b"get / HTTP/1.1"])
def test_a_broken_request_line_is_400(server: Service, line: bytes) -> None:
    assert answer_to(server, line + b"\r\nHost: h\r\n\r\n")[9:12] == b"400"
    assert get(server)


def test_names_with_underscores_are_no_headers(app: App) -> None:
    seen: list[Any] = []

    def look(environ: Any, start_response: Any) -> Any:
        seen.append(environ.get("HTTP_X_INSTANCE_ID"))
        start_response("204 No Content", [])
        return []

    service = serve(look, "127.0.0.1", 0, threads=1, limits=SHORT, refusal=plain)
    service.start()
    try:
        answer_to(service, b"GET / HTTP/1.1\r\nHost: h\r\nX_Instance_ID: forged\r\nConnection: close\r\n\r\n")
        assert b"\r\n\r\n400: " in answer_to(service, b"?\r\n\r\n")
    finally:
        service.stop(2)
    assert seen == [None]


def test_a_request_under_way_is_answered_before_the_end_and_idle_clients_are_not_waited_for(
    server: Service, app: App
) -> None:
    with connect(server) as idle, connect(server) as busy, concurrent.futures.ThreadPoolExecutor(1) as pool:
        busy.sendall(b"GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
        until(lambda: bool(app.seen))
        stopping = pool.submit(server.stop, 10)
        assert idle.recv(10) == b""
        assert not stopping.done()
        app.go.set()
        began = time.monotonic()
        assert all_of(busy).startswith(b"HTTP/1.1 200 ")
        stopping.result(5)
        assert time.monotonic() - began < 3


def test_a_request_that_does_not_end_is_not_waited_for_longer_than_said(server: Service, app: App) -> None:
    with connect(server) as busy:
        busy.sendall(b"GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
        until(lambda: bool(app.seen))
        began = time.monotonic()
        server.stop(0.5)
        assert time.monotonic() - began < 3


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
