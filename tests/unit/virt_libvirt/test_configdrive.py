"""Config drives: what other tools read from them."""

import datetime
import subprocess
import types

import pytest
from tests.fakes import guests
from tests.needs import needs

from kilonova.contract import exceptions
from kilonova.virt import configdrive

LAUNCHED = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

FILES = {
    "openstack/latest/meta_data.json": b'{"uuid": "u"}',
    "openstack/latest/user_data": b"#!/bin/sh\n",
    "openstack/2012-08-10/meta_data.json": b"{}",
    "openstack/content/0000": bytes(range(256)) * 9,
    "ec2/2009-04-04/meta-data.json": b"{}",
    "openstack/latest/empty": b"",
}


def run(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, timeout=60).stdout


@needs("isoinfo")
@pytest.mark.parametrize("names", ["-R", "-J"])
def test_iso_holds_all_files_under_both_kinds_of_names(tmp_path, names):
    path = tmp_path / "disk.config"
    configdrive.write(path, FILES, "iso9660")
    assert b"Volume id: config-2" in run("isoinfo", "-d", "-i", path)
    listed = run("isoinfo", names, "-f", "-i", path).decode().split()
    assert {f"/{name}" for name in FILES} <= set(listed)
    for name, content in FILES.items():
        assert run("isoinfo", names, "-i", path, "-x", f"/{name}") == content


@needs("mtools")
def test_vfat_holds_all_files(tmp_path):
    path = tmp_path / "disk.config"
    configdrive.write(path, FILES, "vfat")
    assert path.stat().st_size == 64 << 20
    assert b"config-2" in run("mlabel", "-s", "-i", path, "::").lower()
    for name, content in FILES.items():
        assert run("mtype", "-i", path, f"::/{name}") == content


def test_a_failed_drive_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    path = tmp_path / "disk.config"
    with pytest.raises(exceptions.ConfigDriveMountFailed, match="not installed"):
        configdrive.write(path, FILES, "vfat")
    assert list(tmp_path.iterdir()) == []


def test_unknown_format(tmp_path):
    with pytest.raises(exceptions.ConfigDriveUnknownFormat):
        configdrive.write(tmp_path / "x", FILES, "ext4")


@pytest.mark.parametrize(
    ("asked", "image", "forced", "launched", "expected"),
    [
        ("", {}, False, None, False),
        ("True", {}, False, None, True),
        ("", {"img_config_drive": "mandatory"}, False, None, True),
        ("", {"img_config_drive": "optional"}, False, None, False),
        ("", {}, True, None, True),
        ("", {}, True, LAUNCHED, False),
        ("True", {}, False, LAUNCHED, True),
    ],
)
def test_who_gets_a_drive(asked, image, forced, launched, expected):
    conf = types.SimpleNamespace(force_config_drive=forced)
    instance = guests.instance(config_drive=asked, launched_at=launched)
    assert configdrive.required(conf, instance, guests.image(**image)) is expected
