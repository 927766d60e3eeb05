"""uWSGI daemons for the services that are WSGI applications."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kilonova.cloud import ini
from kilonova.cloud.daemons import Daemon
from kilonova.cloud.packages import foreign_path
from kilonova.cloud.probes import http_answers
from kilonova.cloud.site import LOOPBACK, Site


def daemon(
    site: Site,
    name: str,
    venv: Path,
    module: str,
    port: int,
    env: Mapping[str, str] | None = None,
    probe: str = "/",
    threads: int = 8,
    processes: int = 1,
    arguments: str | None = None,
) -> Daemon:
    """One master and its workers behind an HTTP port of the loopback.

    Uploads need patience (`chunked-input-*`), and since uWSGI keeps no connection open it has to say so.
    """
    file = site.etc / "uwsgi" / f"{name}.ini"
    options = {
        "http-socket": f"{LOOPBACK}:{port}",
        "module": module,
        "virtualenv": venv,
        "pyargv": arguments,
        "master": True,
        "processes": processes,
        "threads": threads,
        "enable-threads": True,
        "lazy-apps": True,
        "thunder-lock": True,
        "die-on-term": True,
        "need-app": True,
        "buffer-size": 65535,
        "chunked-input-limit": 64 * 1024 * 1024,
        "chunked-input-timeout": 120,
        "socket-timeout": 60,
        "http-timeout": 120,
        "add-header": "Connection: close",
        "worker-reload-mercy": 3,
        "hook-master-start": "unix_signal:15 gracefully_kill_them_all",
        "listen": 128,
        "disable-logging": None if site.settings.access_logs else True,
        "log-date": True,
        "procname-prefix-spaced": name,
        "env": [f"{key}={value}" for key, value in (env or {}).items()],
    }
    if site.settings.access_logs:
        options |= {"req-logger": f"file:{site.access_log(name)}", "log-format": "%(method) %(uri) %(status) %(msecs)"}
    ini.write(file, {"uwsgi": options})
    return Daemon(
        name,
        [venv / "bin" / "uwsgi", "--ini", file],
        env={"PYTHONPATH": str(foreign_path())},
        ready=http_answers(f"http://{LOOPBACK}:{port}{probe}"),
    )
