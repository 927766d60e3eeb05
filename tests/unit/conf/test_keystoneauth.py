"""Options of keystoneauth1 that we declare ourselves are the library's, and a start does without the library."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from keystoneauth1 import loading
from oslo_config import cfg

from kilonova.conf import _keystoneauth, unknown


def facts(options: list[cfg.Opt], *but: str) -> dict[str, Any]:
    kept = ("name", "dest", "secret", "required", "deprecated_for_removal", *(() if "default" in but else ("default",)))
    return {
        option.dest: (
            type(option),
            option.type,
            {kind: getattr(option, kind) for kind in kept},
            [(former.name, former.group) for former in option.deprecated_opts],
        )
        for option in options
    }


def test_session_and_credentials() -> None:
    assert facts(_keystoneauth.session()) == facts(loading.get_session_conf_options())
    assert facts(_keystoneauth.auth()) == facts(loading.get_auth_common_conf_options())


def test_adapter() -> None:
    theirs = facts(loading.get_adapter_conf_options(include_deprecated=False), "default")
    ours = facts(_keystoneauth.adapter("network"), "default")
    assert {name: theirs[name] for name in ours} == ours
    assert theirs.keys() - ours.keys() == {"version", "min_version", "max_version"}


@pytest.mark.parametrize("plugin", unknown.listed(unknown.CREDENTIALS))
def test_names_of_the_usual_plugins(plugin: str) -> None:
    assert unknown.listed(unknown.CREDENTIALS)[plugin] == unknown.plugin_names(plugin)


def test_a_start_does_without_the_library() -> None:
    """Its HTTP stack takes a tenth of the time; it comes with the first request to another service."""
    code = "import sys, kilonova.cmd.assembly, kilonova.conductor.service; print('keystoneauth1' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
