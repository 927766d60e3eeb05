"""Declared-format check: what is refused before a tool opens it."""

import struct
import subprocess

import pytest

from kilonova import conf as configuration
from kilonova.base.outward import without_paths
from kilonova.contract import exceptions
from kilonova.virt import images
from kilonova.virt.libvirt.qemu_img import QemuImg


def qemu_img(*arguments):
    subprocess.run(["qemu-img", *map(str, arguments)], check=True, capture_output=True, timeout=60)


@pytest.fixture
def raw(tmp_path):
    path = tmp_path / "raw"
    path.write_bytes(b"\0" * (1 << 20))
    return path


@pytest.fixture
def qcow2(tmp_path):
    path = tmp_path / "qcow2"
    qemu_img("create", "-f", "qcow2", path, "8M")
    return path


def test_what_is_declared_is_found(raw, qcow2):
    assert images.inspect(raw, "i", "raw") == images.Inspection("raw", 1 << 20)
    assert images.inspect(qcow2, "i", "qcow2") == images.Inspection("qcow2", 8 << 20)


@pytest.mark.parametrize("declared", ["raw", "vmdk", "vhdx", "iso"])
def test_another_content_than_declared_is_refused(qcow2, declared):
    with pytest.raises(exceptions.ImageUnacceptable, match="does not match disk_format"):
        images.inspect(qcow2, "i", declared)


@pytest.mark.parametrize("declared", [None, "ploop", "docker"])
def test_unknown_formats_are_refused(raw, declared):
    with pytest.raises(exceptions.ImageUnacceptable, match="not supported"):
        images.inspect(raw, "i", declared)


def test_a_backing_file_is_refused(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"\0" * 4096)
    path = tmp_path / "image"
    qemu_img("create", "-f", "qcow2", "-F", "raw", "-b", secret, path)
    with pytest.raises(exceptions.ImageUnacceptable, match="safety check"):
        images.inspect(path, "i", "qcow2")


def test_a_data_file_is_refused(tmp_path):
    path = tmp_path / "image"
    qemu_img("create", "-f", "qcow2", "-o", f"data_file={tmp_path}/elsewhere,data_file_raw=on", path, "1M")
    with pytest.raises(exceptions.ImageUnacceptable, match="safety check"):
        images.inspect(path, "i", "qcow2")


def test_a_vmdk_descriptor_that_names_files_is_refused(tmp_path):
    path = tmp_path / "image"
    descriptor = b'# Disk DescriptorFile\nversion=1\ncreateType="monolithicFlat"\nRW 2048 FLAT "/etc/shadow" 0\n'
    path.write_bytes(descriptor.ljust(1 << 16, b"\0"))
    with pytest.raises(exceptions.ImageUnacceptable):
        images.inspect(path, "i", "vmdk")


def test_a_kernel_is_raw_whatever_it_contains(raw):
    assert images.inspect(raw, "i", "aki").format == "raw"


def test_a_kernel_that_is_an_image_with_a_backing_file_is_refused(tmp_path):
    path = tmp_path / "image"
    qemu_img("create", "-f", "qcow2", "-u", "-F", "raw", "-b", "/etc/passwd", path, "1M")
    with pytest.raises(exceptions.ImageUnacceptable):
        images.inspect(path, "i", "ari")


def test_a_partition_table_is_still_raw(tmp_path):
    sector = bytearray(512)
    sector[446:462] = struct.pack("<BBBBBBBBII", 0x80, 0, 1, 0, 0x83, 0, 1, 0, 1, 100)
    sector[510:512] = b"\x55\xaa"
    path = tmp_path / "disk"
    path.write_bytes(bytes(sector).ljust(1 << 20, b"\0"))
    assert images.inspect(path, "i", "raw").format == "raw"


def test_a_cached_image_is_raw_or_as_declared(raw, qcow2):
    assert images.recheck(raw, "i", "qcow2") == "raw"
    assert images.recheck(qcow2, "i", "qcow2") == "qcow2"
    with pytest.raises(exceptions.ImageUnacceptable):
        images.recheck(qcow2, "i", "raw")


def test_an_image_inside_a_converted_image_is_refused(raw, qcow2):
    images.require_raw(raw, "i")
    with pytest.raises(exceptions.ImageUnacceptable, match="format is now qcow2"):
        images.require_raw(qcow2, "i")


def test_two_formats_at_once_are_refused(tmp_path, qcow2):
    path = tmp_path / "both"
    content = bytearray(qcow2.read_bytes().ljust(1 << 20, b"\0"))
    content[0x8001:0x8006] = b"CD001"
    path.write_bytes(bytes(content))
    with pytest.raises(exceptions.ImageUnacceptable):
        images.inspect(path, "i", "qcow2")


@pytest.mark.parametrize(
    "act",
    [
        lambda tool, path: tool.convert(path, path.with_name("raw"), "qcow2", "raw", "i"),
        lambda tool, path: tool.info(path, "qcow2"),
        lambda tool, path: tool.info(path.with_name("absent"), "qcow2"),
        lambda tool, path: tool.resize(path, "qcow2", 1 << 20),
        lambda tool, path: tool.create(path / "below", "raw", 1 << 20),
    ],
)
def test_what_a_tool_says_of_a_broken_image_names_no_file(tmp_path, act):
    conf = configuration.new()
    conf([], project="nova", default_config_files=[], default_config_dirs=[])
    path = tmp_path / "broken"
    path.write_bytes(b"QFI\xfb" + b"\0" * 100)
    with pytest.raises(exceptions.NovaException) as raised:
        act(QemuImg(conf), path)
    assert str(tmp_path) not in raised.value.format_message()
    assert raised.value.format_message() == without_paths(raised.value.format_message())
