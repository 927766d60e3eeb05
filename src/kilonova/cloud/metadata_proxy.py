"""The metadata address 169.254.169.254 for the guests of an OVN cloud on one machine.

Neutron gives every network with metadata a port of type `localport`. This process plugs each of them into the
integration bridge, in a network namespace of its own, listens there, and passes requests on to the compute service's
metadata API with the headers that say who asks (`X-Instance-ID` and its signature, HMAC-SHA256 over the id).

The secret shared with that API comes in the environment, METADATA_PROXY_SECRET.

It follows OVN's southbound database (`southbound.py`) and needs neither Neutron nor a database.
One process serves all networks: a socket stays in the namespace in which it was opened.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import hashlib
import hmac
import http.client
import http.server
import logging
import os
import socket
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from kilonova.cloud import loopback
from kilonova.cloud.commands import PUBLIC, ok, run
from kilonova.cloud.southbound import Port, Ports, follow

LOG = logging.getLogger("metadata-proxy")
ADDRESS = "169.254.169.254"
CLONE_NEWNET = 0x40000000
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

MOST_AT_ONCE = 32
SILENCE = 15
"""Seconds that a guest may say nothing."""

MOST_POSTED = 64 * 1024
"""Bytes of a body: all that a guest has to post is a password."""


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
            with loopback.opened(request, 60) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read()
        except http.client.InvalidURL:
            return 400, {}, b"this is no path\n"
        except (OSError, http.client.HTTPException) as error:
            LOG.warning("the metadata API does not answer: %s", error)
            return 503, {}, b"the metadata service does not answer\n"


class Handler(http.server.BaseHTTPRequestHandler):
    """Passes on what guests of one network ask."""

    ports: Ports
    datapath: str
    upstream: Upstream
    timeout = SILENCE

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
        if not self.path.startswith("/"):
            # What follows the API's address must not make another address of it.
            self.answer(400, {}, b"this is no path\n")
            return
        client = self.client_address[0]
        port = self.ports.owner(self.datapath, client)
        if port is None:
            self.answer(404, {}, b"no server has this address\n")
            return
        # The API knows no HEAD; what it says to GET is told without its body.
        method = "GET" if self.command == "HEAD" else self.command
        self.answer(*self.upstream.ask(method, self.path, dict(self.headers), body, port, client))

    def answer(self, code: int, headers: dict[str, str], body: bytes) -> None:
        LOG.info("%s %r %d", self.client_address[0], self.path, code)
        self.send_response(code)
        self.send_header("Content-Type", headers.get("Content-Type", "text/plain"))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def handler(ports: Ports, datapath: str, upstream: Upstream) -> type[Handler]:
    """Request handler of one network."""
    return type("OneNetwork", (Handler,), {"ports": ports, "datapath": datapath, "upstream": upstream})


class Server(http.server.ThreadingHTTPServer):
    """Serves MOST_AT_ONCE requests of a network at once; who comes when all are taken is sent away."""

    daemon_threads = True

    def __init__(self, listening: socket.socket, handling: type[http.server.BaseHTTPRequestHandler]) -> None:
        super().__init__((ADDRESS, 80), handling, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.free = threading.BoundedSemaphore(MOST_AT_ONCE)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self.free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            LOG.warning("%s is sent away: %d requests are being served", client_address[0], MOST_AT_ONCE)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.free.release()


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
        """Every network is seen to, whatever is wrong with another one; the first failure is raised at the end."""
        wanted = self.ports.with_metadata()
        failures: list[Exception] = []
        for datapath in {*self.serving, *wanted}:
            try:
                self.see_to(datapath, wanted.get(datapath))
            except Exception as error:  # noqa: BLE001 - the first one is raised at the end
                LOG.warning("network %s is not as it should be: %s", datapath, error)
                failures.append(error)
        if failures:
            raise failures[0]

    def see_to(self, datapath: str, port: Port | None) -> None:
        """Serve the network at that port, or no more. May be repeated."""
        known = self.serving.get(datapath)
        if known is not None and known[0] != port:
            old, server = known
            server.shutdown()
            server.server_close()
            if port is None:
                self.plugs.unplug(old)
                LOG.info("network %s is gone", old.device)
            del self.serving[datapath]
        if port is not None and datapath not in self.serving:
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
