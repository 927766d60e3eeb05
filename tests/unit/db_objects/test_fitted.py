"""A record that a database refused, as every database takes it."""

from __future__ import annotations

import json

import pytest

from kilonova.contract import objects
from kilonova.db import exact
from kilonova.db.objects import fitted
from kilonova.db.query import fitting, json_text, storable

SMILE = "\U0001f600"


def test_r23_text_is_marked_and_cut() -> None:
    asked = objects.Instance(
        uuid="u",
        display_name=f"a{SMILE}b\0" + "x" * 300,
        metadata={f"k{SMILE}": "v" * 300},
        system_metadata={"a": None},
    )
    made = fitted.instance(asked)
    assert made.display_name == "a\ufffdb\ufffd" + "x" * 251
    assert made.metadata == {"k\ufffd": "v" * 255}
    assert made.system_metadata == {"a": None}
    assert asked.metadata == {f"k{SMILE}": "v" * 300}


def test_r23_of_tags_that_mysql_takes_for_one_the_first_stays() -> None:
    asked = objects.TagList(objects=[objects.Tag(tag=name) for name in ("tag", "TAG", "täg", "b" * 99, SMILE)])
    made = fitted.tags(asked)
    assert made is not None
    assert {tag.tag for tag in made.objects} == {"tag", "b" * 60, "\ufffd"}
    assert fitted.tags(None) is None


def test_r23_devices() -> None:
    asked = objects.BlockDeviceMappingList(objects=[objects.BlockDeviceMapping(volume_type=SMILE, boot_index=0)])
    made = fitted.devices(asked)
    assert made is not None
    assert (made.objects[0].volume_type, made.objects[0].boot_index) == ("\ufffd", 0)


def test_words_of_other_services_are_stored() -> None:
    assert fitting(f"no{SMILE}") == storable("no\U00012345") == "no\ufffd"
    assert json_text({"a": f"é{SMILE}\0"}).count("\\u") == 3
    assert json.loads(json_text({"a": f"é{SMILE}\0"})) == {"a": f"é{SMILE}\0"}


@pytest.mark.parametrize(
    ("new", "present", "clash"),
    [
        (["a", "b"], [], None),
        (["a", "A"], [], ("a", "A")),
        (["a", "a"], [], None),
        (["a"], ["a"], None),
        (["A"], ["a"], ("a", "A")),
        (["a "], ["a"], ("a", "a ")),
        (["é"], ["E"], ("E", "é")),
        (["a"], ["a", "A"], None),
    ],
)
def test_r22_clashes(new: list[str], present: list[str], clash: tuple[str, str] | None) -> None:
    assert exact.clash(new, present) == clash
