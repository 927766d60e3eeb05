"""The applications under the WSGI servers that operators run, configured as docs/wsgi.md says."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.needs import needs
from tests.unit.cmd.cloud import Cloud

from kilonova.db.engine import Database
from kilonova.db.migrations import sync

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "wsgi.md").read_text()
PATIENCE = 60
TOKEN = {"X-Auth-Token": "admin:abc", "X-OpenStack-Nova-API-Version": "2.90"}


def documented(title: str) -> str:
    """The configuration in the chapter of that title."""
    chapter = DOCUMENT.partition(f"## {title}\n")[2].partition("\n## ")[0]
    found = re.search(r"```\w*\n(.*?)```", chapter, re.DOTALL)
    assert found, title
    return found[1]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


class Site:
    """A configured cloud without guests, and where things are on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        cloud = Cloud(folder)
        sync.sync_api(cloud.api)
        sync.sync_main(cloud.cell)
        assert cloud.run("cell_v2", "map_cell0", "--database_connection", f"sqlite:///{folder}/cell0.db") == 0
        assert cloud.run("cell_v2", "create_cell", "--name", "one", "--transport-url", "fake://") == 0
        cell0 = Database(f"sqlite:///{folder}/cell0.db")
        sync.sync_main(cell0)
        for database in (cloud.api, cloud.cell, cell0):
            database.dispose()
        self.log = folder / "nova.log"
        (folder / "nova.conf").write_text(
            cloud.conf.read_text().replace("rabbit://u:secret@h/", "fake://")
            + f"[DEFAULT]\nlog_file = {self.log}\n[api]\nauth_strategy = noauth2\n"
        )

    def local(self, text: str, **more: str) -> str:
        """A documented configuration with this machine's places."""
        places = {
            "/opt/kilonova/lib/python3/site-packages/kilonova": str(ROOT / "src" / "kilonova"),
            "/opt/kilonova": sys.prefix,
            "/etc/nova": str(self.folder),
            "8774": str(self.port),
            **more,
        }
        for documented_one, ours in places.items():
            text = text.replace(documented_one, ours)
        return text


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@contextlib.contextmanager
def running(words: list[str], site: Site, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    said = (site.folder / "server.log").open("wb")
    environment = {**os.environ, "OS_NOVA_CONFIG_DIR": str(site.folder), **(env or {})}
    server = subprocess.Popen(words, stdout=said, stderr=subprocess.STDOUT, env=environment, start_new_session=True)
    try:
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait(10)


def words_of(name: str, site: Site, service: str = "osapi_compute") -> tuple[list[str], dict[str, str]]:
    tools = Path(os.environ.get("KILONOVA_TEST_WSGI", ""))
    if name == "uWSGI":
        (site.folder / "uwsgi.ini").write_text(site.local(documented(name), osapi_compute=service))
        return [str(tools / "bin/uwsgi"), "--ini", str(site.folder / "uwsgi.ini")], {}
    if name == "gunicorn":
        (site.folder / "gunicorn.conf.py").write_text(site.local(documented(name)))
        packages = next((tools / "lib").glob("python3*/site-packages"))
        line = [sys.executable, "-m", "gunicorn", "--config", str(site.folder / "gunicorn.conf.py")]
        return [*line, f"kilonova.wsgi.{service}:application"], {"PYTHONPATH": str(packages)}
    modules = "/usr/lib/apache2/modules"
    loaded = "".join(
        f"LoadModule {module}_module {modules}/mod_{module}.so\n" for module in ("mpm_event", "authz_core", "wsgi")
    )
    base = (
        f"ServerRoot {site.folder}\nPidFile {site.folder}/pid\nErrorLog {site.folder}/error.log\n"
        f"ServerName h\nDefaultRuntimeDir {site.folder}\n"
    )
    text = site.local(documented(name), osapi_compute=service, **{"user=nova group=nova ": ""}).replace(
        sys.prefix, os.environ["KILONOVA_TEST_APACHE"]
    )
    (site.folder / "apache.conf").write_text(loaded + base + text)
    # It may not serve as root, and another user could not read a clone that is root's: a user namespace has both.
    nobody = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []
    return [*nobody, "/usr/sbin/apache2", "-DFOREGROUND", "-f", str(site.folder / "apache.conf")], {}


def ask(site: Site, path: str, headers: Mapping[str, str] = TOKEN, data: Any = None) -> tuple[int, Any]:
    request = urllib.request.Request(f"http://127.0.0.1:{site.port}{path}", headers=dict(headers), data=data)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            is_json = answer.headers.get_content_type() == "application/json"
            return answer.status, json.load(answer) if is_json else answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


def up(site: Site, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            assert ask(site, "/")[0] == 200
            return
        except (OSError, AssertionError, ValueError):
            said = "".join(file.read_text() for file in site.folder.glob("*.log"))
            assert server.poll() is None, said
            assert time.monotonic() < end, said
            time.sleep(0.2)


SERVERS = [
    pytest.param("uWSGI", marks=needs("wsgi-servers")),
    pytest.param("gunicorn", marks=needs("wsgi-servers")),
    pytest.param("Apache with mod_wsgi", marks=needs("apache-mod-wsgi")),
]


@pytest.mark.parametrize("name", SERVERS)
def test_w1_the_api_is_served_as_documented(site: Site, name: str) -> None:
    words, env = words_of(name, site)
    with running(words, site, env) as server:
        up(site, server)
        body = json.dumps({"flavor": {"name": "m1", "ram": 64, "vcpus": 1, "disk": 1}}).encode()
        kind = {"Content-Type": "application/json"}
        status, made = ask(site, "/v2.1/flavors", {**TOKEN, **kind}, body)
        assert status == 200, made
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda _: ask(site, "/v2.1/servers/detail"), range(40)))
        assert {status for status, _ in answers} == {200}
        assert ask(site, "/healthcheck", {})[0] == 200
        assert ask(site, "/v2.1/servers", {"X-OpenStack-Nova-API-Version": "2.90"})[0] == 401
        # The client says not how long it is: read whole where the server undoes chunks, else refused.
        more = json.dumps({"flavor": {"name": "m2", "ram": 64, "vcpus": 1, "disk": 1}}).encode()
        status, said = ask(site, "/v2.1/flavors", {**TOKEN, **kind}, iter([more[:10], more[10:]]))
        assert status in (200, 411), said
        names = {flavor["name"] for flavor in ask(site, "/v2.1/flavors")[1]["flavors"]}
        assert names == ({"m1", "m2"} if status == 200 else {"m1"})
        lines = site.log.read_text()
        assert re.search(r'127\.0\.0\.1 "POST /v2\.1/flavors" status: 200 len: \d+ microversion: 2\.90', lines)
        assert "Traceback" not in lines, lines


@pytest.mark.parametrize("name", SERVERS)
def test_w1_the_metadata_service_is_served_too(site: Site, name: str) -> None:
    words, env = words_of(name, site, "metadata")
    with running(words, site, env) as server:
        up(site, server)
        assert ask(site, "/")[1].split()[-1] == "latest"
        assert ask(site, "/healthcheck", {})[0] == 200


@pytest.mark.parametrize("name", SERVERS[:2])
def test_w1_a_wrong_configuration_is_said_when_the_server_starts(site: Site, name: str) -> None:
    with (site.folder / "nova.conf").open("a") as file:
        file.write("[DEFAULT]\nreport_interval = ten\n")
    words, env = words_of(name, site)
    with running(words, site, env) as server:
        assert server.wait(PATIENCE) != 0
    said = "".join(file.read_text() for file in site.folder.glob("*.log"))
    assert "nova-api: [DEFAULT] report_interval: invalid literal for int()" in said
