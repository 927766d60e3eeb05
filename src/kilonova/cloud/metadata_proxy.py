"""The metadata address 169.254.169.254 for the guests of an OVN cloud on one machine.

Neutron gives every network with metadata a port of type `localport`. This process plugs each of them into the
integration bridge, in a network namespace of its own, listens there, and passes requests on to the compute service's
metadata API with the headers that say who asks (`X-Instance-ID` and its signature, HMAC-SHA256 over the id).

The secret shared with that API comes in the environment, METADATA_PROXY_SECRET.

It follows OVN's southbound database by OVSDB's `monitor` (RFC 7047, 4.1.5) and needs neither Neutron nor a database.
One process serves all networks: a socket stays in the namespace in which it was opened.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import hashlib
import hmac
import http.server
import json
import logging
import os
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kilonova.cloud.commands import PUBLIC, ok, run

LOG = logging.getLogger("metadata-proxy")
ADDRESS = "169.254.169.254"
CLONE_NEWNET = 0x40000000
DEVICE_PREFIX = "ovnmeta-"
COLUMNS = ["logical_port", "type", "mac", "external_ids", "datapath"]
DROPPED = {
    "host",
    "connection",
    "content-length",
    "x-instance-id",
    "x-tenant-id",
    "x-instance-id-signature",
    "x-metadata-provider",
    "x-metadata-provider-signature",
    "x-forwarded-for",
}
"""Request headers that a guest must not choose, or that belong to one connection."""

MOST_POSTED = 64 * 1024
"""Bytes of a body: all that a guest has to post is a password."""


@dataclasses.dataclass(frozen=True)
class Port:
    """A row of `Port_Binding`."""

    name: str
    kind: str
    mac: str
    ips: tuple[str, ...]
    cidrs: tuple[str, ...]
    device: str
    project: str
    mtu: str
    datapath: str

    @classmethod
    def of(cls, row: dict[str, Any]) -> Port:
        outside = dict(row["external_ids"][1])
        words = as_list(row["mac"])
        mac, *ips = words[0].split() if words else [""]
        return cls(
            name=row["logical_port"],
            kind=row["type"],
            mac=mac,
            ips=tuple(ips),
            cidrs=tuple(outside.get("neutron:cidrs", "").split()),
            device=outside.get("neutron:device_id", ""),
            project=outside.get("neutron:project_id", ""),
            mtu=outside.get("neutron:mtu", ""),
            datapath=row["datapath"][1],
        )

    @property
    def serves_metadata(self) -> bool:
        return self.kind == "localport" and self.device.startswith(DEVICE_PREFIX) and bool(self.mac and self.cidrs)


def as_list(value: Any) -> list[Any]:
    """An OVSDB column: a set of any size but one comes as `["set", [...]]`."""
    if isinstance(value, list) and value and value[0] == "set":
        return list(value[1])
    return [value]


class Ports:
    """The ports as last heard of."""

    def __init__(self) -> None:
        self.rows: dict[str, Port] = {}

    def update(self, changes: dict[str, Any]) -> None:
        for key, change in changes.get("Port_Binding", {}).items():
            if "new" in change:
                self.rows[key] = Port.of(change["new"])
            else:
                self.rows.pop(key, None)

    def with_metadata(self) -> dict[str, Port]:
        return {port.datapath: port for port in self.rows.values() if port.serves_metadata}

    def owner(self, datapath: str, ip: str) -> Port | None:
        """The guest's port that has this address on this network."""
        for port in list(self.rows.values()):
            if (
                port.datapath == datapath
                and port.kind == ""
                and (ip in port.ips or any(c.split("/")[0] == ip for c in port.cidrs))
            ):
                return port
        return None


def messages(stream: socket.socket) -> Iterator[dict[str, Any]]:
    """JSON values one after another."""
    decoder, text = json.JSONDecoder(), ""
    while True:
        data = stream.recv(65536)
        if not data:
            raise ConnectionError("the southbound database closed the connection")
        text += data.decode()
        while text := text.lstrip():
            try:
                value, end = decoder.raw_decode(text)
            except ValueError:
                break
            text = text[end:]
            yield value


def follow(southbound: Path, ports: Ports, changed: Callable[[], None]) -> None:
    """Keep `ports` up to date until the connection ends."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.connect(str(southbound))
        request = {"Port_Binding": [{"columns": COLUMNS}]}
        send(stream, {"method": "monitor", "params": ["OVN_Southbound", None, request], "id": 0})
        for message in messages(stream):
            if message.get("method") == "echo":
                send(stream, {"result": message["params"], "error": None, "id": message["id"]})
            elif message.get("method") == "update":
                ports.update(message["params"][1])
                changed()
            elif message.get("id") == 0:
                if message.get("error"):
                    raise ConnectionError(f"monitor was refused: {message['error']}")
                ports.rows.clear()
                ports.update(message["result"])
                changed()


def send(stream: socket.socket, message: dict[str, Any]) -> None:
    stream.sendall(json.dumps(message).encode())


class Plugs:
    """Devices and namespaces of the networks, on one bridge."""

    def __init__(self, ovs_run_dir: Path, bridge: str, prefix: str) -> None:
        self.environment = {"OVS_RUNDIR": str(ovs_run_dir)}
        self.database = f"--db=unix:{ovs_run_dir / 'db.sock'}"
        self.bridge = bridge
        self.prefix = prefix

    def namespace(self, port: Port) -> str:
        return f"{self.prefix}-{port.name[:11]}"

    def device(self, port: Port) -> str:
        return f"tap{port.name[:11]}"

    def plug(self, port: Port) -> str:
        """Make namespace, device and addresses what they should be; returns the namespace. May be repeated."""
        namespace, device = self.namespace(port), self.device(port)
        if not Path("/run/netns", namespace).exists():
            run(["ip", "netns", "add", namespace], umask=PUBLIC)
        inside = ["ip", "-n", namespace]
        if not ok([*inside, "link", "show", device]):
            self.vsctl("--if-exists", "del-port", self.bridge, device)
            options = ["type=internal", f"external_ids:iface-id={port.name}"]
            mtu = [f"mtu_request={port.mtu}"] if port.mtu else []
            self.vsctl("add-port", self.bridge, device, "--", "set", "Interface", device, *options, *mtu)
            run(["ip", "link", "set", device, "netns", namespace])
        run([*inside, "link", "set", "lo", "up"])
        run([*inside, "link", "set", device, "address", port.mac])
        run([*inside, "link", "set", device, "up"])
        for cidr in (*port.cidrs, f"{ADDRESS}/32"):
            run([*inside, "addr", "replace", cidr, "dev", device])
        return namespace

    def unplug(self, port: Port) -> None:
        self.vsctl("--if-exists", "del-port", self.bridge, self.device(port))
        run(["ip", "netns", "del", self.namespace(port)], check=False)

    def vsctl(self, *words: str) -> None:
        run(["ovs-vsctl", "--timeout=20", self.database, *words], env=self.environment)


def listen_inside(namespace: str) -> socket.socket:
    """A socket on the metadata address in a namespace. Only the calling thread's namespace changes, and back again."""
    libc = ctypes.CDLL(None, use_errno=True)
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(open("/proc/thread-self/ns/net"))
        there = stack.enter_context(open(f"/run/netns/{namespace}"))
        enter(libc, there.fileno())
        try:
            server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind((ADDRESS, 80))
            server.listen(64)
        finally:
            enter(libc, home.fileno())
    return server


def enter(libc: ctypes.CDLL, descriptor: int) -> None:
    if libc.setns(descriptor, CLONE_NEWNET):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


@dataclasses.dataclass(frozen=True)
class Upstream:
    """The metadata API and the secret shared with it."""

    url: str
    secret: str

    def ask(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None, port: Port, client: str
    ) -> tuple[int, dict[str, str], bytes]:
        signature = hmac.new(self.secret.encode(), port.device.encode(), hashlib.sha256).hexdigest()
        kept = {name: value for name, value in headers.items() if name.lower() not in DROPPED}
        said = {
            "X-Instance-ID": port.device,
            "X-Tenant-ID": port.project,
            "X-Instance-ID-Signature": signature,
            "X-Forwarded-For": client,
        }
        request = urllib.request.Request(  # noqa: S310  our own http URL
            self.url + path, body, headers=kept | said, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read()
        except OSError as error:
            LOG.warning("the metadata API does not answer: %s", error)
            return 503, {}, b"the metadata service does not answer\n"


def handler(ports: Ports, datapath: str, upstream: Upstream) -> type[http.server.BaseHTTPRequestHandler]:
    """Request handler of one network."""

    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = 60

        def do_GET(self) -> None:
            self.pass_on(None)

        do_HEAD = do_GET  # noqa: N815

        def do_POST(self) -> None:
            """A guest posts its encrypted password."""
            length = self.headers.get("Content-Length", "")
            if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
                self.close_connection = True
                self.answer(411, {}, b"a body needs its length\n")
                return
            if len(length) > 9 or int(length) > MOST_POSTED:
                self.close_connection = True
                self.answer(413, {}, b"the body is too long\n")
                return
            self.pass_on(self.rfile.read(int(length)))

        def pass_on(self, body: bytes | None) -> None:
            client = self.client_address[0]
            port = ports.owner(datapath, client)
            if port is None:
                self.answer(404, {}, b"no server has this address\n")
                return
            # The API knows no HEAD; what it says to GET is told without its body.
            method = "GET" if self.command == "HEAD" else self.command
            self.answer(*upstream.ask(method, self.path, dict(self.headers), body, port, client))

        def answer(self, code: int, headers: dict[str, str], body: bytes) -> None:
            LOG.info("%s %s %d", self.client_address[0], self.path, code)
            self.send_response(code)
            self.send_header("Content-Type", headers.get("Content-Type", "text/plain"))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listening: socket.socket, handling: type[http.server.BaseHTTPRequestHandler]) -> None:
        super().__init__((ADDRESS, 80), handling, bind_and_activate=False)
        self.socket.close()
        self.socket = listening


class Proxy:
    """Plugs and servers follow the ports."""

    def __init__(self, plugs: Plugs, upstream: Upstream) -> None:
        self.ports = Ports()
        self.plugs = plugs
        self.upstream = upstream
        self.serving: dict[str, tuple[Port, Server]] = {}
        self.dirty = threading.Event()

    def run(self, southbound: Path) -> None:
        threading.Thread(target=self.reconcile_for_ever, name="reconcile", daemon=True).start()
        while True:
            try:
                follow(southbound, self.ports, self.dirty.set)
            except OSError as error:
                LOG.warning("%s; trying again", error)
            time.sleep(1)

    def reconcile_for_ever(self) -> None:
        while True:
            self.dirty.wait()
            self.dirty.clear()
            try:
                self.reconcile()
            except Exception:
                LOG.exception("networks are not as they should be; trying again")
                time.sleep(1)
                self.dirty.set()

    def reconcile(self) -> None:
        wanted = self.ports.with_metadata()
        for datapath, (port, server) in list(self.serving.items()):
            if wanted.get(datapath) != port:
                server.shutdown()
                server.server_close()
                del self.serving[datapath]
                if datapath not in wanted:
                    self.plugs.unplug(port)
                    LOG.info("network %s is gone", port.device)
        for datapath, port in wanted.items():
            if datapath not in self.serving:
                server = Server(listen_inside(self.plugs.plug(port)), handler(self.ports, datapath, self.upstream))
                threading.Thread(target=server.serve_forever, name=port.device, daemon=True).start()
                self.serving[datapath] = (port, server)
                LOG.info("serving network %s", port.device)


def answer_control(path: Path, proxy: Proxy) -> None:
    """Say to everybody who opens that socket how many networks are served: who does not, does not work."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen(8)
        while True:
            connection, _ = listening.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(f"networks {len(proxy.serving)}\n".encode())


def main() -> None:
    parser = argparse.ArgumentParser(prog="metadata-proxy", description=__doc__)
    parser.add_argument("--southbound", type=Path, required=True, help="socket of OVN's southbound database")
    parser.add_argument("--ovs-run-dir", type=Path, required=True, help="folder with Open vSwitch's db.sock")
    parser.add_argument("--bridge", required=True, help="the integration bridge")
    parser.add_argument("--metadata", required=True, help="URL of the compute service's metadata API")
    parser.add_argument("--prefix", required=True, help="prefix of the namespaces' names")
    parser.add_argument("--control", type=Path, required=True, help="socket that says whether this works")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    plugs = Plugs(given.ovs_run_dir, given.bridge, given.prefix)
    proxy = Proxy(plugs, Upstream(given.metadata, os.environ["METADATA_PROXY_SECRET"]))
    threading.Thread(target=answer_control, args=(given.control, proxy), name="control", daemon=True).start()
    proxy.run(given.southbound)


if __name__ == "__main__":
    main()
