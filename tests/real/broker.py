"""A private RabbitMQ node for tests: own data, own ports, stopped by its pids."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.real.servers import _free_port, _running, _wait_for

SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"


def rabbitmq_found() -> bool:
    return os.path.exists(SERVER) and bool(shutil.which("epmd"))


@contextlib.contextmanager
def rabbitmq(folder: Path) -> Iterator[str]:
    """A broker; gives its transport URL."""
    folder.mkdir(exist_ok=True)
    port, mapper_port, between = _free_port(), _free_port(), _free_port()
    (folder / "inetrc").write_text('{host,{127,0,0,1},["localhost"]}.\n{lookup,[file,native]}.\n')
    (folder / "enabled_plugins").write_text("[].\n")
    (folder / "rabbitmq.conf").write_text("loopback_users = none\nvm_memory_high_watermark.relative = 0.2\n")
    environment = {
        **os.environ,
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"chaos{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(between),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "none.conf"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 2:2 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}",
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(mapper_port),
        "ERL_INETRC": str(folder / "inetrc"),
        "LC_ALL": "C.UTF-8",
    }
    mapper = subprocess.Popen(["epmd", "-address", "127.0.0.1", "-port", str(mapper_port)], env=environment)
    with _running(mapper), (folder / "out").open("w") as out:
        _wait_for(mapper_port)
        server = subprocess.Popen([SERVER], env=environment, stdout=out, stderr=out)
        with _running(server):
            _wait_for(port, 120)
            yield f"rabbit://guest:guest@127.0.0.1:{port}/"
