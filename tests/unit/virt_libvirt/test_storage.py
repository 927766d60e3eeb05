"""Disks and the image cache, made by the real qemu-img."""

import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import threading

import pytest
from tests.fakes import guests
from tests.needs import check

from kilonova.base import wanted
from kilonova.compute.lanes import Preempted
from kilonova.contract import exceptions
from kilonova.virt.driver import BlockDevices, LocalDisk
from kilonova.virt.libvirt.qemu_img import QemuImg

check("qemu-img", module=True)

MIB = 1 << 20
GIB = 1 << 30


def qemu_img(*arguments):
    done = subprocess.run(["qemu-img", *map(str, arguments)], check=True, capture_output=True, timeout=60)
    return done.stdout


def info(path):
    return json.loads(qemu_img("info", "--output=json", path))


class Images:
    def __init__(self, source):
        self.source = source
        self.fetched = 0
        self.hold = None

    def fetch(self, ctxt, image_id, path):
        self.fetched += 1
        if self.hold:
            self.hold.wait(5)
        shutil.copy(self.source, path)


@pytest.fixture
def raw(tmp_path):
    path = tmp_path / "image.raw"
    path.write_bytes(b"\x90" * MIB)
    return Images(path)


@pytest.fixture
def qcow2(tmp_path):
    path = tmp_path / "image.qcow2"
    qemu_img("create", "-f", "qcow2", path, "4M")
    return Images(path)


def made(layout, spec):
    return layout.instance(spec.instance.uuid)


def test_an_overlay_of_the_cached_image(make_storage, layout, raw):
    spec = guests.spec(image_meta=guests.image("raw"))
    make_storage(raw).make(None, spec)
    files = made(layout, spec)
    found = info(files.root)
    assert found["format"] == "qcow2"
    assert found["virtual-size"] == GIB
    assert found["backing-filename"] == str(layout.cached_image(guests.IMAGE_ID))
    assert found["backing-filename-format"] == "raw"
    assert json.loads(files.formats.read_text()) == {str(files.root): "qcow2"}


def test_a_qcow2_image_becomes_raw_in_the_cache(make_storage, layout, qcow2):
    make_storage(qcow2).make(None, guests.spec())
    cached = layout.cached_image(guests.IMAGE_ID)
    assert info(cached)["format"] == "raw"
    assert sorted(path.name for path in layout.cache.iterdir()) == [cached.name]


def test_a_qcow2_image_stays_as_it_is_if_so_configured(conf, make_storage, layout, qcow2):
    conf.set_override("force_raw_images", False)
    spec = guests.spec()
    make_storage(qcow2).make(None, spec)
    assert info(layout.cached_image(guests.IMAGE_ID))["format"] == "qcow2"
    assert info(made(layout, spec).root)["backing-filename-format"] == "qcow2"


def test_a_cached_image_survives_a_change_of_that_option(conf, make_storage, layout, qcow2):
    make_storage(qcow2).make(None, guests.spec())
    conf.set_override("force_raw_images", False)
    spec = guests.spec()
    make_storage(qcow2).make(None, spec)
    assert info(made(layout, spec).root)["backing-filename-format"] == "raw"


@pytest.mark.parametrize("images_type", ["flat", "raw"])
def test_flat_disks_are_copies(conf, make_storage, layout, raw, images_type):
    conf.set_override("images_type", images_type, "libvirt")
    spec = guests.spec(image_meta=guests.image("raw"))
    make_storage(raw).make(None, spec)
    disk = made(layout, spec).root
    assert info(disk)["format"] == "raw"
    assert disk.stat().st_size == GIB
    assert disk.stat().st_blocks * 512 < 8 * MIB


def test_without_cow_images_disks_are_copies(conf, make_storage, layout, raw):
    conf.set_override("use_cow_images", False)
    spec = guests.spec(image_meta=guests.image("raw"))
    make_storage(raw).make(None, spec)
    assert "backing-filename" not in info(made(layout, spec).root)


def test_a_flavor_without_size_takes_the_images(make_storage, layout, raw):
    spec = guests.spec(image_meta=guests.image("raw"), instance=guests.instance(flavor=guests.flavor(root_gb=0)))
    make_storage(raw).make(None, spec)
    assert info(made(layout, spec).root)["virtual-size"] == MIB


def test_an_image_too_big_for_the_flavor(make_storage, layout, raw):
    os.truncate(raw.source, 2 * GIB)
    with pytest.raises(exceptions.FlavorDiskSmallerThanImage):
        make_storage(raw).make(None, guests.spec(image_meta=guests.image("raw")))


def test_an_image_too_big_for_the_flavor_is_not_unpacked(make_storage, layout, qcow2):
    qemu_img("resize", qcow2.source, "2G")
    with pytest.raises(exceptions.FlavorDiskSmallerThanImage):
        make_storage(qcow2).make(None, guests.spec())
    assert list(layout.cache.iterdir()) == []


def test_what_was_fetched_as_a_kernel_is_looked_at_as_a_disk(conf, make_storage, layout, tmp_path):
    conf.set_override("vmdk_allowed_types", ["monolithicSparse"], "compute")
    path = tmp_path / "image.vmdk"
    qemu_img("create", "-f", "vmdk", "-o", "subformat=streamOptimized", path, "4M")
    storage = make_storage(Images(path))
    storage._cache.raw_file(None, guests.IMAGE_ID)
    with pytest.raises(exceptions.ImageUnacceptable, match="VMDK type"):
        storage.make(None, guests.spec(image_meta=guests.image("vmdk")))


def test_who_waits_for_an_image_that_is_fetched_may_be_deleted(make_storage):
    fetched, begins, go_on = [], threading.Event(), threading.Event()

    class Slow:
        def fetch(self, ctxt, image_id, path):
            fetched.append(image_id)
            begins.set()
            assert go_on.wait(20)
            pathlib.Path(path).write_bytes(b"kernel")

    cache = make_storage(Slow())._cache
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.raw_file, None, guests.IMAGE_ID)
        assert begins.wait(20)
        second = pool.submit(cache.raw_file, None, guests.IMAGE_ID)

        def deleted():
            raise Preempted

        with wanted.asking(deleted), pytest.raises(Preempted):
            cache.raw_file(None, guests.IMAGE_ID)
        assert not first.done()
        go_on.set()
        assert first.result(20).read_bytes() == b"kernel"
        assert second.result(20) == first.result()
    assert fetched == [guests.IMAGE_ID]


def test_ephemerals_and_swap(make_storage, layout, raw):
    disks = BlockDevices(ephemerals=[LocalDisk(1, format="ext4"), LocalDisk(1, format="vfat")], swap=LocalDisk(8))
    spec = guests.spec(image_meta=guests.image("raw"), block_devices=disks)
    make_storage(raw).make(None, spec)
    files = made(layout, spec)
    assert info(files.ephemeral(0))["virtual-size"] == GIB
    assert info(files.swap)["virtual-size"] == 8 * MIB
    bases = {path.name.split("_")[0]: path for path in layout.cache.iterdir() if "_" in path.name}
    assert b"SWAPSPACE2" in bases["swap"].read_bytes()[:8192]
    kinds = {
        subprocess.run(["blkid", "-o", "value", "-s", "TYPE", p], capture_output=True, text=True).stdout.strip()
        for p in layout.cache.glob("ephemeral*")
    }
    assert kinds == {"ext4", "vfat"}


def test_the_flavors_ephemeral_disk(make_storage, layout, raw):
    instance = guests.instance(flavor=guests.flavor(ephemeral_gb=1, swap=4))
    spec = guests.spec(image_meta=guests.image("raw"), instance=instance)
    make_storage(raw).make(None, spec)
    files = made(layout, spec)
    assert files.local.exists()
    assert files.swap.exists()


@pytest.mark.parametrize(
    ("os_type", "configured", "name"),
    [
        (None, None, "ephemeral_1_0706d66"),
        ("linux", None, "ephemeral_1_40d1d2c"),
        (None, "ext4", "ephemeral_1_40d1d2c"),
    ],
)
def test_the_file_system_of_an_ephemeral_disk_follows_the_guests_system(
    make_storage, layout, conf, raw, os_type, configured, name
):
    """0706d66 is vfat, 40d1d2c ext4: the names that Nova gives."""
    conf.set_override("default_ephemeral_format", configured)
    instance = guests.instance(os_type=os_type)
    disks = BlockDevices(ephemerals=[LocalDisk(1)])
    spec = guests.spec(image_meta=guests.image("raw"), instance=instance, block_devices=disks)
    make_storage(raw).make(None, spec)
    assert [path.name for path in layout.cache.glob("ephemeral*")] == [name]


def test_an_unknown_file_system(make_storage, raw):
    spec = guests.spec(
        image_meta=guests.image("raw"), block_devices=BlockDevices(ephemerals=[LocalDisk(1, format="zfs")])
    )
    with pytest.raises(exceptions.InvalidBDMFormat):
        make_storage(raw).make(None, spec)


def test_kernel_and_ramdisk_are_copied_as_they_are(make_storage, layout, raw):
    instance = guests.instance(kernel_id="11111111-1111-1111-1111-111111111111", ramdisk_id=None)
    spec = guests.spec(image_meta=guests.image("ami"), instance=instance)
    make_storage(raw).make(None, spec)
    assert made(layout, spec).kernel.read_bytes() == raw.source.read_bytes()
    assert not made(layout, spec).ramdisk.exists()


def test_making_disks_again_changes_nothing(make_storage, layout, raw):
    spec = guests.spec(image_meta=guests.image("raw"))
    storage = make_storage(raw)
    storage.make(None, spec)
    before = made(layout, spec).root.stat()
    storage.make(None, spec)
    assert made(layout, spec).root.stat().st_ino == before.st_ino
    assert raw.fetched == 1


def test_a_failed_fetch_leaves_nothing_in_the_cache(make_storage, layout, raw):
    def fail(ctxt, image_id, path):
        pathlib.Path(path).write_bytes(b"half")
        raise exceptions.ImageNotFound(image_id=image_id)

    raw.fetch = fail
    with pytest.raises(exceptions.ImageNotFound):
        make_storage(raw).make(None, guests.spec(image_meta=guests.image("raw")))
    assert list(layout.cache.iterdir()) == []


@pytest.mark.parametrize("declared", ["raw", "vmdk"])
def test_a_lying_image_is_refused_and_not_kept(make_storage, layout, qcow2, declared):
    with pytest.raises(exceptions.ImageUnacceptable):
        make_storage(qcow2).make(None, guests.spec(image_meta=guests.image(declared)))
    assert list(layout.cache.iterdir()) == []


def test_an_image_within_an_image_is_refused(make_storage, layout, tmp_path):
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    qemu_img("create", "-f", "qcow2", "-u", "-b", "/etc/passwd", "-F", "raw", inner, "1M")
    qemu_img("convert", "-f", "raw", "-O", "qcow2", inner, outer)
    with pytest.raises(exceptions.ImageUnacceptable, match="format is now qcow2"):
        make_storage(Images(outer)).make(None, guests.spec())
    assert list(layout.cache.iterdir()) == []


@pytest.mark.parametrize(("create_type", "accepted"), [("monolithicSparse", True), ("twoGbMaxExtentSparse", False)])
def test_vmdk(conf, make_storage, tmp_path, create_type, accepted):
    path = tmp_path / "image.vmdk"
    qemu_img("create", "-f", "vmdk", "-o", f"subformat={create_type}", path, "4M")
    storage = make_storage(Images(path))
    spec = guests.spec(image_meta=guests.image("vmdk"))
    if accepted:
        storage.make(None, spec)
        return
    with pytest.raises(exceptions.ImageUnacceptable):
        storage.make(None, spec)


def test_vmdk_types_can_be_forbidden(conf, make_storage, tmp_path):
    conf.set_override("vmdk_allowed_types", [], "compute")
    path = tmp_path / "image.vmdk"
    qemu_img("create", "-f", "vmdk", path, "4M")
    with pytest.raises(exceptions.ImageUnacceptable, match="VMDK type"):
        make_storage(Images(path)).make(None, guests.spec(image_meta=guests.image("vmdk")))


def test_builds_at_once_fetch_once(make_storage, raw):
    raw.hold = threading.Event()
    storage = make_storage(raw)
    specs = [guests.spec(image_meta=guests.image("raw")) for _ in range(4)]
    threads = [threading.Thread(target=storage.make, args=(None, spec)) for spec in specs]
    for thread in threads:
        thread.start()
    raw.hold.set()
    for thread in threads:
        thread.join(30)
    assert raw.fetched == 1


def test_delete_is_repeatable_and_finishes_what_was_begun(make_storage, layout, raw):
    spec = guests.spec(image_meta=guests.image("raw"))
    storage = make_storage(raw)
    storage.make(None, spec)
    files = made(layout, spec)
    files.directory.rename(files.being_deleted)
    files.directory.mkdir()
    storage.delete(spec.instance.uuid)
    assert not files.directory.exists()
    assert not files.being_deleted.exists()
    storage.delete(spec.instance.uuid)


def test_a_disk_of_unrecorded_format_is_not_guessed(make_storage, layout, raw):
    spec = guests.spec(image_meta=guests.image("raw"))
    storage = make_storage(raw)
    storage.make(None, spec)
    files = made(layout, spec)
    files.formats.unlink()
    with pytest.raises(exceptions.InvalidDiskInfo, match="format of disk"):
        storage.disk_format(files, files.root)
    files.formats.write_text("{broken")
    with pytest.raises(exceptions.InvalidDiskInfo):
        storage.disk_format(files, files.root)


def test_preallocation(conf, make_storage, layout, raw):
    conf.set_override("preallocate_images", "space")
    spec = guests.spec(image_meta=guests.image("raw"), instance=guests.instance(flavor=guests.flavor(root_gb=0)))
    storage = make_storage(raw)
    storage.make(None, spec)
    assert storage.driver_io == "native"
    assert made(layout, spec).root.stat().st_blocks * 512 >= MIB


def test_qemu_img_runs_within_limits(conf, raw):
    conf.set_override("images_address_space_limit", 0, "libvirt")
    with pytest.raises(exceptions.InvalidDiskInfo):
        QemuImg(conf).info(raw.source, "raw")


def test_names_with_commas(conf, tmp_path):
    odd = tmp_path / "a,b"
    odd.mkdir()
    base, disk = odd / "base", odd / "disk"
    base.write_bytes(b"\0" * MIB)
    QemuImg(conf).create(disk, "qcow2", None, {"backing_file": base, "backing_fmt": "raw"})
    assert info(disk)["backing-filename"] == str(base)
