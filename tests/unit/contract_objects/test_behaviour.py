"""What objects do beyond holding fields: changes, copies, defaults, updates from a remote method."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kilonova.contract import exceptions, objects
from kilonova.contract.objects import enums
from kilonova.contract.objects.base import WireObject
from kilonova.contract.objects.signatures import arguments

UUID = "5f2b1d7e-1f4e-4a3c-8a57-0d3f1f1b2c3d"


def backlevelled(obj: WireObject, version: str) -> dict[str, Any]:
    manifest = objects.manifest(obj.obj_name()) | {obj.obj_name(): version}
    primitive: dict[str, Any] = obj.obj_to_primitive(target_version=version, version_manifest=manifest)
    return primitive


def test_changing_contents_of_metadata_is_a_change() -> None:
    instance = objects.Instance(uuid=UUID, metadata={"a": "1"}, system_metadata={})
    instance.obj_reset_changes()
    assert instance.obj_what_changed() == set()
    instance.metadata["a"] = "2"
    instance.system_metadata["image_x"] = "y"
    assert instance.obj_what_changed() == {"metadata", "system_metadata"}
    instance.obj_reset_changes(["metadata"])
    assert instance.obj_what_changed() == {"system_metadata"}


def test_changes_travel_and_copies_keep_them() -> None:
    instance = objects.Instance(uuid=UUID, metadata={"a": "1"})
    instance.obj_reset_changes()
    instance.metadata["a"] = "2"
    for other in (WireObject.obj_from_primitive(instance.obj_to_primitive()), copy.deepcopy(instance)):
        assert other.obj_what_changed() == {"metadata"}
        other.obj_reset_changes()
        other.metadata["b"] = "3"
        assert other.obj_what_changed() == {"metadata"}
    assert instance.metadata == {"a": "2"}


def test_reading_an_unset_field_says_which() -> None:
    with pytest.raises(exceptions.ObjectActionError, match=r"Instance\.host is not set"):
        _ = objects.Instance(uuid=UUID).host
    assert objects.Instance(uuid=UUID).get("host", "none") == "none"


def test_updates_of_a_remote_method_are_taken_over() -> None:
    instance = objects.Instance(uuid=UUID, vm_state="building", host="h1")
    fault = objects.InstanceFault(message="broken")
    updates = {"vm_state": "error", "fault": fault, "launched_at": "2026-01-01T00:00:00Z", "obj_what_changed": ["host"]}
    objects.apply_updates(instance, updates)
    assert (instance.vm_state, instance.fault.message, instance.launched_at.year) == ("error", "broken", 2026)
    assert "host" in instance.obj_what_changed()
    assert "vm_state" not in instance.obj_what_changed()


def test_names_of_guests_follow_the_template() -> None:
    instance = objects.Instance(id=26, uuid=UUID)
    assert instance.name == "instance-0000001a"
    assert instance.name_by("%(uuid)s") == UUID
    assert objects.Instance(uuid=UUID).name == UUID


def test_other_spellings_become_the_canonical_ones() -> None:
    spec = objects.HVSpec(arch="AMD64", hv_type="QEMU", vm_mode="hv")
    assert (spec.arch, spec.hv_type, spec.vm_mode) == ("x86_64", "qemu", "hvm")
    assert objects.Diagnostics(state=4).state == "shutdown"
    assert enums.DiskBus.ALL[0] == "fdc"
    with pytest.raises(ValueError, match="floppy"):
        objects.ImageMetaProps(hw_disk_bus="floppy")


def test_diagnostics_count_what_is_added() -> None:
    found = objects.Diagnostics()
    found.add_cpu(id=0, time=5)
    found.add_disk(read_bytes=1)
    assert (found.num_cpus, found.num_nics, found.num_disks) == (1, 0, 1)
    assert found.cpu_details[0].utilisation is None
    assert objects.Diagnostics().num_cpus == 0


def test_vtpm_secrets_are_not_lost_on_the_way_to_an_older_host() -> None:
    data = objects.LibvirtLiveMigrateData(vifs=[], bdms=[], vtpm_secret_uuid=UUID)
    with pytest.raises(exceptions.ObjectActionError, match="vTPM"):
        backlevelled(data, "1.13")
    plain = backlevelled(objects.LibvirtLiveMigrateData(vifs=[]), "1.8")
    assert plain["nova_object.data"] == {}


def test_pinned_cpus_are_where_older_hosts_look_for_them() -> None:
    cell = objects.InstanceNUMACell(id=0, cpuset=set(), pcpuset={1, 2}, memory=1, cpu_policy="dedicated")
    older = backlevelled(cell, "1.4")["nova_object.data"]
    assert sorted(older["cpuset"]) == [1, 2]
    assert "pcpuset" not in older


def test_signatures() -> None:
    plain, star, stars = arguments("a, *b, **c")
    assert (plain.name, plain.default, star.kind, stars.kind) == ("a", ..., "*", "**")
    assert arguments("x='y', n=None")[0].default == "y"
    assert arguments("") == ()


def test_a_list_is_a_sequence_of_its_objects() -> None:
    tags = objects.TagList(objects=[objects.Tag(resource_id=UUID, tag=name) for name in ("a", "b")])
    assert [tag.tag for tag in tags] == ["a", "b"]
    assert len(objects.TagList()) == 0
    primitive = tags.obj_to_primitive()
    assert primitive["nova_object.name"] == "TagList"
    assert len(WireObject.obj_from_primitive(primitive)) == 2


def test_processors_that_no_machine_has_are_refused() -> None:
    """Whoever owns an image writes what he likes into its properties: counting to it must not fill the memory."""
    for text in ("0-99999999", "^1-99999999", "8192", "1,99999999"):
        with pytest.raises(ValueError, match="processor"):
            objects.ImageMeta.from_dict({"properties": {"hw_numa_cpus.0": text}})
    found = objects.ImageMeta.from_dict({"properties": {"hw_numa_cpus.0": "0-3,^2", "hw_numa_cpus.1": "8191"}})
    assert found.properties.hw_numa_cpus == [{0, 1, 3}, {8191}]
