"""Which configuration an application under a foreign WSGI server reads."""

import importlib

import pytest

from kilonova.wsgi import files


def test_files_of_the_environment(tmp_path):
    for name in ("a.conf", "nova.conf"):
        (tmp_path / name).touch()
    here = {"OS_NOVA_CONFIG_DIR": f" {tmp_path} "}
    assert files.arguments(here) == [f"--config-file={tmp_path}/nova.conf"]
    some = here | {"OS_NOVA_CONFIG_FILES": "api-paste.ini;a.conf;missing.conf"}
    assert files.arguments(some) == [f"--config-file={tmp_path}/a.conf"]


@pytest.mark.parametrize("name", ["metadata", "osapi_compute"])
def test_importing_makes_nothing(name):
    module = importlib.import_module(f"kilonova.wsgi.{name}")
    assert "application" not in vars(module)
    with pytest.raises(AttributeError):
        module.something_else  # noqa: B018
