"""`pip install kilonova` is a compute host: no SQL library, and an agent boots.

A fresh environment is made with uv from the lock file; skipped where uv or the
package index cannot be reached.
"""

import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]

BOOT = """
import importlib.util, sys, tempfile
assert importlib.util.find_spec("sqlalchemy") is None, "SQLAlchemy is installed"
from kilonova.cmd.compute import boot_check
boot_check(tempfile.mkdtemp())
assert "sqlalchemy" not in sys.modules
print("agent booted")
"""


@pytest.fixture(scope="module")
def plain_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed")
    venv = tmp_path_factory.mktemp("plain") / "venv"
    made = subprocess.run(
        [uv, "sync", "--frozen", "--no-dev", "--no-editable", "--quiet"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "UV_PROJECT_ENVIRONMENT": str(venv), "HOME": str(pathlib.Path.home())},
        capture_output=True,
        text=True,
        timeout=170,
    )
    if made.returncode:
        pytest.skip(f"the plain environment cannot be made: {made.stderr.strip()[-300:]}")
    return str(venv / "bin" / "python")


def test_an_agent_boots_without_sqlalchemy(plain_python: str) -> None:
    run = subprocess.run([plain_python, "-c", BOOT], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.stdout.strip().endswith("agent booted")
