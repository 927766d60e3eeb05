"""Each daemon is asked in its own protocol; one that only takes connections does not answer."""

import contextlib
import http.server
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kilonova.cloud import ping, probes
from kilonova.contract.rpc import conductor
from kilonova.wire.rpc.bus import Bus


@contextlib.contextmanager
def answering(listening: socket.socket, answer: Callable[[bytes], bytes], asked: bool = True) -> Iterator[None]:
    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection:
                    connection.sendall(answer(connection.recv(4096) if asked else b""))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join(10)


def at_path(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()
    return listening


SAID_AND_HEARD = [
    (probes.ovsdb, b'"method":"echo"', b'{"id":"kilonova","result":["kilonova"],"error":null}'),
    (probes.unixctl, b'"method":"version"', b'{"id":0,"result":"ovs-vswitchd 3.1","error":null}'),
    (probes.memcached, b"version", b"VERSION 1.6\r\n"),
    (probes.libvirt_keepalive, b"keep", struct.pack(">7I", 28, 0x6B656570, 1, 2, 2, 0, 0)),
]


@pytest.mark.parametrize(("probe", "said", "heard"), SAID_AND_HEARD, ids=lambda value: getattr(value, "__name__", ""))
def test_who_answers_at_a_socket(
    probe: Callable[[Path], probes.Probe], said: bytes, heard: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "s"
    assert not probe(path)()
    with answering(at_path(path), lambda question: heard if said in question else b"what?"):
        assert probe(path)()
    path.unlink()
    with answering(at_path(path), lambda question: b"what?"):
        assert not probe(path)()


@pytest.mark.parametrize("probe", [probes.amqp, probes.epmd])
def test_who_answers_at_a_port(probe: Callable[[int], probes.Probe]) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    answers = {b"A": b"\1\0\0 PLAIN AMQPLAIN", b"\0": struct.pack(">I", port) + b"name kilonova0 at port 1\n"}
    with answering(listening, lambda question: answers[question[:1]]):
        assert probe(port)()
    assert not probe(port)()


def test_one_that_only_takes_connections_does_not_answer_and_holds_nobody() -> None:
    with socket.create_server(("127.0.0.1", 0)) as still:
        begin = time.monotonic()
        assert not probes.says(still.getsockname()[1], b"hello", b"hello", patience=0.2)()
        assert time.monotonic() - begin < 2


def test_one_that_has_answered_and_closed_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connected, listening = probes.connected, at_path(tmp_path / "s")

    def late(where: int | Path, patience: float) -> socket.socket:
        stream = connected(where, patience)
        other, _ = listening.accept()
        other.sendall(b"networks 1\n")
        other.close()
        return stream

    monkeypatch.setattr(probes, "connected", late)
    with listening:
        assert probes.says(tmp_path / "s", b"", b"networks")()


def test_one_that_speaks_first() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    with answering(listening, lambda question: b"networks 1\n", asked=False):
        assert probes.says(port, b"", b"networks")()


def test_http() -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(int(self.path[1:]))
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_port
    assert probes.http_answers(f"http://127.0.0.1:{port}/200")()
    assert probes.http_answers(f"http://127.0.0.1:{port}/401")()
    assert not probes.http_answers(f"http://127.0.0.1:{port}/503")()
    server.shutdown()
    server.server_close()
    assert not probes.http_answers(f"http://127.0.0.1:{port}/200")()


def test_a_conductor_is_asked_over_its_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ping, "PATIENCE", 0.3)
    url = "fake://asked"
    own = Bus(ping.bus(url).conf, url)
    server = own.serve("conductor", "controller", [])
    server.start()
    try:
        assert ping.nova(url, conductor.API.topic, "controller")()
        assert not ping.nova(url, conductor.API.topic, "another")()
        # Whoever refuses the question has answered it.
        assert ping.oslo(url, "nova", conductor.API.topic, "controller")()
    finally:
        server.stop()
        server.wait(5)
    assert not ping.nova(url, conductor.API.topic, "controller")()
