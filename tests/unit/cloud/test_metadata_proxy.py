import contextlib
import hashlib
import hmac
import http.client
import http.server
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.cloud import metadata_proxy
from kilonova.cloud.commands import environment
from kilonova.cloud.daemons import wait_until
from kilonova.cloud.errors import CloudError
from kilonova.cloud.metadata_proxy import Proxy, Upstream
from kilonova.cloud.probes import says
from kilonova.cloud.southbound import Port, Ports, follow, messages

NETWORK = ["uuid", "11111111-0000-0000-0000-000000000000"]
OTHER = ["uuid", "22222222-0000-0000-0000-000000000000"]


def row(name: str, kind: str, mac: Any, datapath: list[str], **outside: str) -> dict[str, Any]:
    pairs = [[f"neutron:{key}", value] for key, value in outside.items()]
    return {"logical_port": name, "type": kind, "mac": mac, "external_ids": ["map", pairs], "datapath": datapath}


LOCALPORT = row(
    "meta-1", "localport", "fa:16:3e:00:00:01 10.0.0.2", NETWORK, device_id="ovnmeta-n", cidrs="10.0.0.2/24"
)
GUEST = row(
    "port-1", "", "fa:16:3e:00:00:02 127.0.0.1", NETWORK, device_id="server-1", project_id="p", cidrs="127.0.0.1/24"
)
TWIN = row(
    "port-2", "", "fa:16:3e:00:00:03 127.0.0.1", OTHER, device_id="server-2", project_id="q", cidrs="127.0.0.1/24"
)


@pytest.fixture
def ports() -> Ports:
    one = Ports()
    one.update({"Port_Binding": {str(n): {"new": each} for n, each in enumerate((LOCALPORT, GUEST, TWIN))}})
    return one


def test_only_localports_of_metadata_serve(ports: Ports) -> None:
    assert {port.name for port in ports.with_metadata().values()} == {"meta-1"}
    ports.update({"Port_Binding": {"0": {"old": {}}}})
    assert ports.with_metadata() == {}


def test_the_same_address_on_two_networks_is_two_servers(ports: Ports) -> None:
    for network, server in ((NETWORK, "server-1"), (OTHER, "server-2")):
        owner = ports.owner(network[1], "127.0.0.1")
        assert owner is not None
        assert owner.device == server
    assert ports.owner(NETWORK[1], "10.0.0.77") is None


def test_a_port_without_address_serves_nobody() -> None:
    bare = Port.of(row("meta-2", "localport", ["set", []], NETWORK, device_id="ovnmeta-n"))
    assert not bare.serves_metadata


def test_database_messages_are_followed_across_packets(ports: Ports, tmp_path: Path) -> None:
    path = tmp_path / "sb.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        heard: list[Any] = []

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                heard.append(json.loads(connection.recv(65536)))
                first = json.dumps({"id": 0, "error": None, "result": {"Port_Binding": {"9": {"new": GUEST}}}})
                second = json.dumps(
                    {"method": "update", "id": None, "params": [None, {"Port_Binding": {"8": {"new": TWIN}}}]}
                )
                echo = json.dumps({"method": "echo", "id": "e", "params": ["x"]})
                connection.sendall(first[:40].encode())
                connection.sendall((first[40:] + second + echo).encode())
                heard.append(json.loads(connection.recv(65536)))

        thread = threading.Thread(target=serve)
        thread.start()
        changes: list[int] = []
        with pytest.raises(ConnectionError):
            follow(path, ports, lambda: changes.append(len(ports.rows)))
        thread.join(10)
    assert heard[0]["method"] == "monitor"
    assert heard[1] == {"id": "e", "result": ["x"], "error": None}
    assert changes == [1, 2]


def test_a_packet_may_end_in_the_middle_of_a_character() -> None:
    """Of somebody's port name."""
    here, there = socket.socketpair()
    with here, there:
        for byte in '{"name": "käse"}'.encode():
            there.sendall(bytes([byte]))
        there.shutdown(socket.SHUT_WR)

        class Slow:
            """Its packets are as short as can be."""

            def recv(self, most: int) -> bytes:
                return here.recv(1)

        heard = messages(Slow())  # type: ignore[arg-type]
        assert next(heard) == {"name": "käse"}
        with pytest.raises(ConnectionError):
            next(heard)


@pytest.fixture
def api() -> Iterator[tuple[str, list[Any]]]:
    seen: list[Any] = []

    class Api(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((self.path, dict(self.headers)))
            code = 404 if self.path == "/nothing" else 200
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(b'{"uuid": "server-1"}' if code == 200 else b"no")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((self.path, dict(self.headers), body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", seen
    server.shutdown()
    server.server_close()


@pytest.fixture
def guest(ports: Ports, api: tuple[str, list[Any]]) -> Iterator[http.client.HTTPConnection]:
    """Speaks to the proxy of the first network from the address 127.0.0.1."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    handling = metadata_proxy.handler(ports, NETWORK[1], Upstream(api[0], "s3cret"))
    server = metadata_proxy.Server(listening, handling)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    server.shutdown()
    server.server_close()


def test_who_asks_is_told_to_the_api_and_cannot_be_faked(
    guest: http.client.HTTPConnection, api: tuple[str, list[Any]]
) -> None:
    lies = {
        "X-Instance-ID": "victim",
        "x-instance-id-signature": "0",
        "X-Forwarded-For": "10.9.9.9",
        "Accept": "text/x",
    }
    guest.request("GET", "/openstack/latest/meta_data.json", headers=lies)
    answer = guest.getresponse()
    assert (answer.status, answer.read()) == (200, b'{"uuid": "server-1"}')
    path, headers = api[1][0]
    headers = {name.lower(): value for name, value in headers.items()}
    assert path == "/openstack/latest/meta_data.json"
    assert headers["x-instance-id"] == "server-1"
    assert headers["x-tenant-id"] == "p"
    assert headers["x-forwarded-for"] == "127.0.0.1"
    assert headers["accept"] == "text/x"
    assert headers["x-instance-id-signature"] == hmac.new(b"s3cret", b"server-1", hashlib.sha256).hexdigest()


def test_a_guest_posts_its_password(guest: http.client.HTTPConnection, api: tuple[str, list[Any]]) -> None:
    guest.request("POST", "/openstack/latest/password", b"sesame", {"X-Metadata-Provider": "n", "X-Instance-ID": "v"})
    assert guest.getresponse().status == 200
    path, headers, body = api[1][0]
    headers = {name.lower(): value for name, value in headers.items()}
    assert (path, body, headers["x-instance-id"]) == ("/openstack/latest/password", b"sesame", "server-1")
    assert "x-metadata-provider" not in headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Transfer-Encoding": "chunked"}, 411),
        ({"Content-Length": "-1"}, 411),
        ({"Content-Length": "9" * 30}, 413),
        ({"Content-Length": str(metadata_proxy.MOST_POSTED + 1)}, 413),
    ],
)
def test_a_body_without_bounds_is_refused(
    guest: http.client.HTTPConnection, api: tuple[str, list[Any]], headers: dict[str, str], status: int
) -> None:
    guest.putrequest("POST", "/openstack/latest/password")
    for name, value in headers.items():
        guest.putheader(name, value)
    guest.endheaders()
    assert guest.getresponse().status == status
    assert api[1] == []


@pytest.mark.parametrize("path", ["@127.0.0.1:{port}/", "0/", ".example/", "http://127.0.0.1:{port}/"])
def test_a_path_cannot_lead_to_another_service(
    guest: http.client.HTTPConnection, api: tuple[str, list[Any]], path: str
) -> None:
    """The proxy runs on the host and could reach what only the host may."""
    with socket.create_server(("127.0.0.1", 0)) as inner:
        inner.settimeout(0.5)
        port = inner.getsockname()[1]
        with socket.create_connection((guest.host, guest.port), 10) as raw:
            raw.sendall(f"GET {path.format(port=port)} HTTP/1.0\r\n\r\n".encode())
            assert raw.makefile("rb").readline().split()[1] == b"400"
        with pytest.raises(TimeoutError):
            inner.accept()
    assert api[1] == []


def test_a_path_with_control_characters_is_refused(
    guest: http.client.HTTPConnection, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with socket.create_connection((guest.host, guest.port), 10) as raw:
        raw.sendall(b"GET /\x1b[31mred HTTP/1.0\r\n\r\n")
        assert raw.makefile("rb").readline().split()[1] == b"400"
    assert "\x1b" not in caplog.text


def test_silent_guests_hold_no_more_threads_than_their_network_has(
    guest: http.client.HTTPConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = (guest.host, guest.port)
    silent = [socket.create_connection(place, 10) for _ in range(metadata_proxy.MOST_AT_ONCE)]
    with socket.create_connection(place, 10) as more:
        assert more.recv(1) == b""
    for each in silent:
        each.close()

    def served() -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException):
            guest.close()
            guest.request("GET", "/openstack")
            return guest.getresponse().status == 200
        return False

    assert wait_until(served, 10)


def test_no_proxy_of_the_machine_is_asked(
    guest: http.client.HTTPConnection, api: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    guest.request("GET", "/openstack")
    assert guest.getresponse().status == 200
    assert environment()["no_proxy"].split(",")[-2:] == ["127.0.0.1", "localhost"]


def test_the_proxy_says_that_it_works(ports: Ports, tmp_path: Path) -> None:
    proxy = Proxy(Plugs(), Upstream("http://127.0.0.1:1", "s"))  # type: ignore[arg-type]
    path = tmp_path / "control"
    assert not says(path, b"", b"networks")()
    threading.Thread(target=metadata_proxy.answer_control, args=(path, proxy), daemon=True).start()
    assert wait_until(says(path, b"", b"networks 0"), 5)


def test_answers_of_the_api_are_passed_on(guest: http.client.HTTPConnection) -> None:
    guest.request("GET", "/nothing")
    assert guest.getresponse().status == 404


def test_a_stranger_is_refused(guest: http.client.HTTPConnection, ports: Ports, api: tuple[str, list[Any]]) -> None:
    ports.update({"Port_Binding": {"1": {"old": {}}}})
    guest.request("GET", "/openstack")
    assert guest.getresponse().status == 404
    assert api[1] == []


def test_an_api_that_is_down_is_503(ports: Ports) -> None:
    port = ports.owner(NETWORK[1], "127.0.0.1")
    assert port is not None
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    code, _, _ = Upstream(f"http://127.0.0.1:{free}", "s").ask("GET", "/", {}, None, port, "127.0.0.1")
    assert code == 503


class Plugs:
    """Plugs nothing, remembers all."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def plug(self, port: Port) -> str:
        self.calls.append(("plug", port.name))
        return "namespace"

    def unplug(self, port: Port) -> None:
        self.calls.append(("unplug", port.name))


def test_networks_come_change_and_go(ports: Ports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_proxy, "listen_inside", lambda namespace: socket.create_server(("127.0.0.1", 0)))
    plugs = Plugs()
    proxy = Proxy(plugs, Upstream("http://127.0.0.1:1", "s"))  # type: ignore[arg-type]
    proxy.ports = ports
    proxy.reconcile()
    proxy.reconcile()
    assert plugs.calls == [("plug", "meta-1")]
    more = LOCALPORT | {
        "external_ids": ["map", [["neutron:device_id", "ovnmeta-n"], ["neutron:cidrs", "10.0.0.2/24 10.1.0.2/24"]]]
    }
    ports.update({"Port_Binding": {"0": {"new": more}}})
    proxy.reconcile()
    assert plugs.calls == [("plug", "meta-1"), ("plug", "meta-1")]
    ports.update({"Port_Binding": {"0": {"old": {}}}})
    proxy.reconcile()
    assert plugs.calls[-1] == ("unplug", "meta-1")
    assert proxy.serving == {}


@pytest.mark.parametrize("broken", ["plug", "unplug"])
def test_a_network_that_fails_keeps_no_other_one_from_metadata(
    ports: Ports, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    monkeypatch.setattr(metadata_proxy, "listen_inside", lambda namespace: socket.create_server(("127.0.0.1", 0)))
    plugs, fails = Plugs(), [True]
    proxy = Proxy(plugs, Upstream("http://127.0.0.1:1", "s"))  # type: ignore[arg-type]
    proxy.ports = ports
    real = getattr(plugs, broken)

    def breaks(port: Port) -> Any:
        if port.name == "meta-1" and fails[0]:
            raise CloudError("the switch is away")
        return real(port)

    if broken == "unplug":
        proxy.reconcile()
        ports.update({"Port_Binding": {"0": {"old": {}}}})
    monkeypatch.setattr(plugs, broken, breaks)
    other = LOCALPORT | {"logical_port": "meta-2", "datapath": OTHER}
    ports.update({"Port_Binding": {"7": {"new": other}}})
    with pytest.raises(CloudError):
        proxy.reconcile()
    assert OTHER[1] in proxy.serving
    fails[0] = False
    proxy.reconcile()
    assert plugs.calls.count((broken, "meta-1")) == 1
    assert (NETWORK[1] in proxy.serving) == (broken == "plug")
    for _, server in proxy.serving.values():
        server.shutdown()
        server.server_close()
