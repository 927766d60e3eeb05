"""Options that nothing obeys are told, each as what it is; nothing is said of the others."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kilonova import conf as configuration
from kilonova.conf import unknown


def told(folder: Path, text: str, *words: str) -> list[str]:
    file = folder / "nova.conf"
    file.write_text(text)
    return [str(each) for each in unknown.find(configuration.load(["--config-file", str(file), *words]))]


@pytest.mark.parametrize(
    "text",
    [
        "[DEFAULT]\ndebug = true\nlog-file = x\nhost = h\n",
        "[DEFAULT]\ntransport_url = rabbit://h/\nrpc_response_timeout = 60\nexecutor_thread_pool_size = 8\n",
        "[DEFAULT]\nquota_cores = 5\n[libvirt]\ncpu_model = Nehalem\n",
        "[keystone_authtoken]\nauth_url = x\nanything = y\n[oslo_messaging_rabbit]\nssl = true\n",
        "[Placement]\nregion-name = r\n",
        "[kilonova]\nflow_lease = 10\n",
    ],
)
def test_what_is_obeyed_is_not_told(tmp_path: Path, text: str) -> None:
    assert told(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[DEFAULT]\nshutdown_timout = 1\n",
            "DEFAULT.shutdown_timout (nova.conf) is no option; did you mean DEFAULT.shut",
        ),
        ("[libvrt]\nvirt_type = kvm\n", "libvrt.virt_type (nova.conf) is no option; did you mean libvirt.virt_type?"),
        (
            "[kilonova]\nflow_leaze = 1\n",
            "is no option; did you mean kilonova.flow_lease?",
        ),
        ("[ironic]\nconductor_gruop = 1\n", "did you mean ironic.conductor_group?"),
        ("[mine]\nxyzzy = 1\n", "mine.xyzzy (nova.conf) is no option"),
        ("[ironic]\nconductor_group = 1\n", "ironic.conductor_group (nova.conf) is an option of Nova's"),
        ("[mdev_nvidia-35]\nmax_instances = 1\n", "is an option of Nova's"),
    ],
)
def test_what_is_told(tmp_path: Path, text: str, said: str) -> None:
    (found,) = told(tmp_path, text)
    assert said in found


def test_a_name_that_many_groups_have_hints_at_none(tmp_path: Path) -> None:
    (found,) = told(tmp_path, "[service_user]\nregion_name = x\n")
    assert found.endswith("is no option")


def test_credentials_are_known_by_their_plugin(tmp_path: Path) -> None:
    text = "[placement]\nauth_url = x\nusername = nova\nproject_domain_name = d\nuser_name = u\npasword = secret\n"
    (found,) = told(tmp_path, f"{text}auth_type = password\n")
    assert "placement.pasword" in found
    assert "placement.password?" in found
    assert "secret" not in found
    assert len(told(tmp_path, f"{text}auth_type = no_such_plugin\n")) == 5


def test_every_file_is_looked_at(tmp_path: Path) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "b.conf").write_text("[api]\nmax_limt = 1\n")
    (folder / "notes.txt").write_text("[api]\nx = 1\n")
    found = told(tmp_path, "[api]\nmaks_limit = 1\n", "--config-dir", str(folder))
    assert [line.split(" is no option")[0] for line in found] == ["api.maks_limit (nova.conf)", "api.max_limt (b.conf)"]


def test_one_line_for_each(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "nova.conf"
    file.write_text("[api]\nmax_limt = 1\n")
    loaded = configuration.load(["--config-file", str(file)])
    with caplog.at_level(logging.WARNING, logger="kilonova.conf.unknown"):
        unknown.warn(loaded)
    assert [record.getMessage() for record in caplog.records] == [
        "api.max_limt (nova.conf) is no option; did you mean api.max_limit?"
    ]
