"""`nova-api` and `nova-metadata-api` as processes: strangers without a token neither stop nor confuse them."""

from __future__ import annotations

import contextlib
import json
import socket
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.cmd.cloud import Cloud
from tests.unit.cmd.test_reload import Running

MANY = 64
MOST_GROWTH = 32 << 20
PATIENCE = 10


@pytest.fixture(params=["api", "metadata"])
def door(request: pytest.FixtureRequest, cloud: Cloud, tmp_path: Path) -> Iterator[tuple[Running, int]]:
    cloud.create_cell()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    base = (
        f"{cloud.conf.read_text()}[DEFAULT]\ntransport_url = fake://\nhost = here\n[api]\nauth_strategy = noauth2\n"
        f"[DEFAULT]\nosapi_compute_listen = 127.0.0.1\nosapi_compute_listen_port = {port}\n"
        f"metadata_listen = 127.0.0.1\nmetadata_listen_port = {port}\n"
    )
    program = Running(f"kilonova.cmd.{request.param}", tmp_path, base)
    try:
        program.wait_for("ready")
        yield program, port
    finally:
        program.kill()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def answered(port: int) -> None:
    began = time.monotonic()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE) as answer:
        assert answer.status == 200
    assert time.monotonic() - began < PATIENCE / 2


def all_of(client: socket.socket) -> bytes:
    got = b""
    with contextlib.suppress(ConnectionError):
        while data := client.recv(65536):
            got += data
    return got


def memory(program: Running) -> int:
    """Bytes that the process has in memory."""
    status = Path(f"/proc/{program.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) << 10


def test_d2_silent_and_slow_clients_keep_nobody_from_an_answer(door: tuple[Running, int]) -> None:
    program, port = door
    answered(port)
    before = memory(program)
    with contextlib.ExitStack() as kept:
        clients = [kept.enter_context(connect(port)) for _ in range(3 * MANY)]
        for client in clients[:MANY]:
            client.sendall(b"POST /v2.1/servers HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n")
        for client in clients[MANY : 2 * MANY]:
            client.sendall(b"GET / HTTP/1.1\r\nHost: h\r\nX-Slow: ")
        for _ in range(3):
            for client in clients[: 2 * MANY]:
                client.sendall(b"a")
            answered(port)
    assert memory(program) - before < MOST_GROWTH


def test_d2_a_header_line_without_end_is_refused_and_not_kept(door: tuple[Running, int]) -> None:
    program, port = door
    before = memory(program)
    with connect(port) as client, contextlib.suppress(ConnectionError):
        client.sendall(b"GET / HTTP/1.1\r\nHost: h\r\nX-Long: ")
        for _ in range(200):
            client.sendall(b"a" * (1 << 20))
        assert all_of(client).startswith(b"HTTP/1.0 431 ")
    answered(port)
    assert memory(program) - before < MOST_GROWTH


def test_d11_a_chunked_body_is_read_and_is_not_the_next_request(door: tuple[Running, int]) -> None:
    program, port = door
    body = json.dumps({"flavor": {"name": "m1", "ram": 64, "vcpus": 1, "disk": 1}}).encode()
    head = b"Host: h\r\nX-Auth-Token: admin:abc\r\n"
    with connect(port) as client:
        client.sendall(b"POST /v2.1/flavors HTTP/1.1\r\n" + head + b"Transfer-Encoding: chunked\r\n\r\n")
        for part in (body[:9], body[9:], b""):
            client.sendall(b"%x\r\n%s\r\n" % (len(part), part))
        client.sendall(b"GET / HTTP/1.1\r\n" + head + b"Connection: close\r\n\r\n")
        answers = all_of(client)
    assert answers.count(b"HTTP/1.1 ") == 2
    if "kilonova.cmd.api" in program.process.args:  # type: ignore[operator]
        assert answers.count(b"HTTP/1.1 200 ") == 2
        assert b'"name":"m1"' in answers.replace(b" ", b"")
    assert not program.said("Traceback"), program.log.read_text()
