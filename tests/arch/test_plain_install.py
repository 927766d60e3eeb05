"""`pip install kilonova` is a compute host: no SQL library, and an agent boots.

A fresh environment is made with uv from the lock file; skipped where uv or the package index cannot be reached.
"""

import os
import pathlib
import shutil
import subprocess

import pytest
from tests.needs import lacking

ROOT = pathlib.Path(__file__).parents[2]

BOOT = """
import importlib.util, pathlib, sys, tempfile

assert importlib.util.find_spec("sqlalchemy") is None, "SQLAlchemy is installed"
try:
    import sqlalchemy
except ImportError:
    pass
else:
    raise AssertionError("SQLAlchemy can be imported")

from tests import fakes

from kilonova import conf as configuration
from kilonova.cmd import assembly
from kilonova.contract import exceptions, objects
from kilonova.compute.store import Store


class Conductor(Store):
    \"\"\"An empty cell: what is created is numbered and forgotten.\"\"\"

    def call(self, ctxt, name, method, *args, **kwargs):
        if name.endswith("List"):
            return getattr(objects, name)(objects=[])
        return [] if method.startswith("get_uuids") else None

    def act(self, ctxt, obj, method, *args, **kwargs):
        if method == "create":
            obj.id = 1
            if obj.obj_name() == "Service":
                obj.disabled = False
        obj.obj_reset_changes()


conf = configuration.new()
conf([], project="nova", default_config_files=[], default_config_dirs=[])
conf.set_override("compute_driver", "fake.FakeDriver")
parts = assembly.Parts(conf)
from kilonova.wire.rpc.bus import Bus

parts.__dict__["bus"] = Bus(conf, "fake://plain/")
parts.__dict__["clients"] = fakes.Cloud().clients
host = assembly.compute(parts, "h1", pathlib.Path(tempfile.mkdtemp()), store=Conductor())
host.start()
assert host.status()["host"] == "h1"
host.stop(5)
assert "sqlalchemy" not in sys.modules
print("agent booted")
"""


@pytest.fixture(scope="module")
def plain_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    uv = os.environ.get("KILONOVA_UV") or shutil.which("uv")
    if uv is None:
        lacking("uv", "there is no uv: neither in PATH nor in KILONOVA_UV, which ./run sets")
    venv = tmp_path_factory.mktemp("plain") / "venv"
    made = subprocess.run(
        [uv, "sync", "--frozen", "--no-dev", "--no-editable", "--quiet"],
        cwd=ROOT,
        env={**os.environ, "UV_PROJECT_ENVIRONMENT": str(venv)},
        capture_output=True,
        text=True,
        timeout=170,
    )
    if made.returncode:
        lacking("package-index", f"the plain environment cannot be made: {made.stderr.strip()[-300:]}")
    return str(venv / "bin" / "python")


def test_an_agent_boots_without_sqlalchemy(plain_python: str) -> None:
    run = subprocess.run(
        [plain_python, "-c", BOOT],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.stdout.strip().endswith("agent booted")
