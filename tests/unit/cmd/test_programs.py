"""What is not installed is said by its extra; what needs none of it works."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kilonova.cmd import extras, programs

PLAIN = """
import sys

for name in {without}:
    sys.modules[name] = None


class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {without}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


for name in {without}:
    del sys.modules[name]
sys.meta_path.insert(0, Lacking())
from kilonova.cmd import programs

sys.argv = [{name!r}, *{words!r}]
sys.exit(programs.run({name!r}))
"""


def plain(name: str, *words: str, without: tuple[str, ...] = ("control",)) -> subprocess.CompletedProcess[str]:
    """A program as it runs where these extras are not installed."""
    modules = tuple(module for extra in without for module in extras.MODULES[extra])
    # These come with other libraries of the plain install, too.
    lacking = tuple(module for module in modules if module not in ("cryptography", "oslo_middleware", "stevedore"))
    code = PLAIN.format(without=lacking, name=name, words=words)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nova-api", ("--config-file", "CONF")),
        ("nova-metadata-api", ("--config-file", "CONF")),
        ("nova-conductor", ("--config-file", "CONF")),
        ("nova-scheduler", ("--config-file", "CONF")),
        ("nova-manage", ("db", "sync")),
        ("nova-manage", ("cell_v2", "list_cells", "--verbose")),
        ("nova-manage", ("volume_attachment", "show", "a", "b")),
        ("nova-status", ("upgrade", "check")),
        ("nova-policy", ("policy", "check")),
        ("kilonova", ("flow", "list")),
    ],
)
def test_a_program_says_which_extra_it_needs(name: str, words: tuple[str, ...], tmp_path: Path) -> None:
    conf = tmp_path / "nova.conf"
    conf.write_text(
        "[api_database]\nconnection = sqlite://\n[database]\nconnection = sqlite://\n"
        "[DEFAULT]\nosapi_compute_listen_port = 0\nmetadata_listen_port = 0\n"
    )
    done = plain(name, *(str(conf) if word == "CONF" else word for word in words))
    said = done.stderr + done.stdout
    assert "needs kilonova[control]" in said
    assert "Traceback" not in said
    assert done.returncode == 1


def test_a_host_tells_its_connector_without_the_control_plane() -> None:
    done = plain("nova-manage", "volume_attachment", "get_connector", "--help")
    assert done.returncode == 0, done.stderr
    assert "connector" in done.stdout
    done = plain("nova-manage", "volume_attachment", "get_connector", without=("control", "libvirt"))
    assert "kilonova[libvirt]" in done.stdout + done.stderr
    done = plain("nova-manage", "--help")
    assert done.returncode == 0
    assert "volume_attachment" in done.stdout


def test_every_program_of_the_package_is_one_of_these() -> None:
    scripts = importlib.metadata.distribution("kilonova").entry_points.select(group="console_scripts")
    assert {script.name for script in scripts} == set(programs.MODULES)
    for script in scripts:
        assert script.load().args == (script.name,)


def test_every_library_of_an_extra_is_known_by_its_module() -> None:
    by_distribution: dict[str, set[str]] = {}
    for module, names in importlib.metadata.packages_distributions().items():
        for name in names:
            by_distribution.setdefault(re.sub(r"[-_.]+", "-", name).lower(), set()).add(module)
    for line in importlib.metadata.requires("kilonova") or ():
        name = re.sub(r"[-_.]+", "-", re.split(r"[\s<>=\[;]", line, maxsplit=1)[0]).lower()
        extra = re.search(r"extra == '(\w+)'", line)
        if extra is None or extra[1] not in extras.MODULES or name == "kilonova" or name not in by_distribution:
            continue
        modules = by_distribution[name]
        assert any(extras.needed(module) for module in modules), (name, modules)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_went_away_is_no_fault(unbuffered: str) -> None:
    """As after `| head`."""
    code = "import sys; from kilonova.cmd import programs; sys.argv = ['kilonova', '-h']; sys.exit(programs.kilonova())"
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    reading, writing = os.pipe()
    os.close(reading)
    try:
        argv = [sys.executable, "-c", code]
        done = subprocess.run(
            argv, env=env, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    finally:
        os.close(writing)
    assert (done.stderr, done.returncode) == ("", programs.UNREAD)
