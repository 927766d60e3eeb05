"""Images and volumes: translation, checksums, attachments, errors in users' words."""

from __future__ import annotations

import datetime
import io

import pytest
from tests import fakes

from kilonova.clients.cinder.client import Cinder
from kilonova.clients.http import Http, ServiceUnavailable
from kilonova.clients.patience import patient
from kilonova.contract import context, exceptions

CTXT = context.RequestContext(user_id="user", project_id="project", auth_token="t")
OTHER = context.RequestContext(user_id="user", project_id="other", auth_token="t")


@pytest.fixture
def cloud() -> fakes.Cloud:
    return fakes.Cloud()


@pytest.fixture
def glance(cloud):
    return cloud.clients.glance


@pytest.fixture
def cinder(cloud):
    return cloud.clients.cinder


# --- glance ------------------------------------------------------------------------------------


def test_image_has_attributes_and_properties(cloud, glance):
    image = cloud.glance.image(b"abc", hw_disk_bus="virtio", mappings='[{"virtual": "root"}]')
    found = glance.image_show(CTXT, image)
    assert found["properties"] == {"hw_disk_bus": "virtio", "mappings": [{"virtual": "root"}]}
    assert found["size"] == 3
    assert found["created_at"] == datetime.datetime(2026, 1, 1)
    assert "schema" not in found


def test_invisible_and_unknown_images(cloud, glance):
    hidden = cloud.glance.image(visibility="private", project="someone")
    for image in (hidden, "nope"):
        with pytest.raises(exceptions.ImageNotFound):
            glance.image_show(CTXT, image)


def test_download_is_verified(cloud, glance, tmp_path):
    image = cloud.glance.image(b"x" * 200_000)
    path = tmp_path / "image"
    glance.fetch(CTXT, image, str(path))
    assert path.read_bytes() == b"x" * 200_000


def test_a_download_ends_when_it_is_not_wanted_any_more(cloud, glance, tmp_path):
    """The server is deleted, or the agent ends; an image may take hours."""
    image, looks = cloud.glance.image(b"x" * (5 << 16)), []

    def wanted():
        looks.append(None)
        if len(looks) == 3:
            raise KeyError("deleted")

    with patient(60, wanted), pytest.raises(KeyError):
        glance.image_download(CTXT, image, str(tmp_path / "image"))
    assert (tmp_path / "image").stat().st_size == 2 << 16


def test_broken_download_is_started_again(cloud, glance, tmp_path):
    image = cloud.glance.image(b"good")
    cloud.glance.fail("GET", f"/v2/images/{image}/file", status=200, body="bad!", times=1)
    glance.image_download(CTXT, image, str(tmp_path / "image"))
    assert (tmp_path / "image").read_bytes() == b"good"


def test_wrong_checksum_is_refused(cloud, glance, tmp_path):
    image = cloud.glance.image(b"good")
    cloud.glance.images[image]["os_hash_value"] = "0" * 128
    glance._downloads = type(glance._downloads)(attempts=1)
    with pytest.raises(exceptions.ImageUnacceptable, match="checksum"):
        glance.image_download(CTXT, image, str(tmp_path / "image"))


def test_image_without_data_is_refused(cloud, glance, tmp_path):
    image = cloud.glance.image(None)
    with pytest.raises(exceptions.ImageUnacceptable, match="queued"):
        glance.image_download(CTXT, image, str(tmp_path / "image"))


def test_new_image_with_data(cloud, glance):
    image = {"id": "44444444-4444-4444-8444-444444444444", "name": "snap", "is_public": False, "disk_format": "qcow2",
             "container_format": "bare", "properties": {"hw_x": 1, "kernel_id": None}}  # fmt: skip
    made = glance.image_create(CTXT, image)
    assert made["id"] == image["id"]
    glance.image_upload(CTXT, made["id"], io.BytesIO(b"data"))
    glance.image_update(CTXT, made["id"], {"properties": {"hw_y": "2"}}, purge_properties=True)
    found = glance.image_show(CTXT, made["id"])
    assert found["status"] == "active"
    assert found["properties"] == {"hw_y": "2"}
    glance.image_delete(CTXT, made["id"])
    assert cloud.glance.images == {}


def test_lists_page_by_page(cloud, glance):
    for n in range(450):
        cloud.glance.image(name=f"i{n}")
    assert len(list(glance.image_list(CTXT))) == 450


# --- cinder ------------------------------------------------------------------------------------


def test_volume_seen_as_its_project(cloud, cinder):
    volume = cloud.cinder.volume(2, bootable="true", volume_image_metadata={"min_ram": "1"})
    found = cinder.volume_show(CTXT, volume)
    assert (found["size"], found["bootable"], found["attach_status"]) == (2, True, "detached")
    assert found["volume_image_metadata"] == {"min_ram": "1"}
    with pytest.raises(exceptions.VolumeNotFound):
        cinder.volume_show(OTHER, volume)


def test_attachment_life(cloud, cinder):
    volume = cloud.cinder.volume()
    made = cinder.attachment_create(CTXT, volume, "server")
    assert made["connection_info"] == {}
    assert cloud.cinder.volumes[volume]["status"] == "reserved"
    updated = cinder.attachment_update(CTXT, made["id"], {"host": "h1"}, "/dev/vdb")
    assert updated["connection_info"]["driver_volume_type"] == "local"
    assert updated["connection_info"]["data"]["device_path"].endswith(volume)
    cinder.attachment_complete(CTXT, made["id"])
    shown = cinder.volume_show(CTXT, volume)
    assert shown["attachments"] == {"server": {"attachment_id": made["id"], "mountpoint": "/dev/vdb"}}
    with pytest.raises(exceptions.InvalidVolume):
        cinder.check_attachable(shown)
    assert cinder.attachment_delete(CTXT, made["id"]) is True
    assert cinder.attachment_delete(CTXT, made["id"]) is False
    assert cloud.cinder.volumes[volume]["status"] == "available"


def test_repeated_reservation_is_the_same(cloud, cinder):
    volume = cloud.cinder.volume()
    first = cinder.attachment_create(CTXT, volume, "server")
    assert cinder.attachment_create(CTXT, volume, "server")["id"] == first["id"]
    assert cinder.attachment_create(CTXT, volume, "server", {"host": "h"})["connection_info"]
    assert len(cloud.cinder.attachments) == 1


def test_volume_held_by_another_server(cloud, cinder):
    volume = cloud.cinder.volume()
    cinder.attachment_create(CTXT, volume, "server")
    with pytest.raises(exceptions.InvalidInput):
        cinder.attachment_create(CTXT, volume, "another")


def test_refusals(cloud, cinder):
    with pytest.raises(exceptions.VolumeAttachmentNotFound):
        cinder.attachment_show(CTXT, "nope")
    with pytest.raises(exceptions.SnapshotNotFound):
        cinder.snapshot_show(CTXT, "nope")
    cloud.cinder.fail("POST", "/volumes", status=413, body={"overLimit": {"message": "too many", "code": 413}})
    with pytest.raises(exceptions.OverQuota, match="too many"):
        cinder.volume_create(CTXT, 1, "v")
    cloud.cinder.unreachable("GET", "/volumes", times=9)
    with pytest.raises(ServiceUnavailable):
        cinder.volume_show(CTXT, "x")


def test_zone_of_volume_and_server(cinder, cloud):
    found = cinder.volume_show(CTXT, cloud.cinder.volume(availability_zone="az1"))
    assert cinder.same_zone(found, "az2")
    strict = Cinder(Http("cinder", cloud.cinder), cross_az_attach=False)
    assert [strict.same_zone(found, zone) for zone in ("az1", "az2", None)] == [True, False, True]


def test_project_existence(cloud):
    cloud.keystone.projects.add("p1")
    keystone = cloud.clients.keystone
    assert keystone.project_exists(CTXT, "p1") is True
    assert keystone.project_exists(CTXT, "p2") is False
    cloud.keystone.fail("GET", "/v3/projects", status=403)
    assert keystone.project_exists(CTXT, "p2") is None
