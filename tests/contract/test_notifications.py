"""Every notification object equals the contract (by fingerprint), and so does every event type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.contract import facts as novas
from tests.contract.test_objects import fingerprint

from kilonova.contract import notifications
from kilonova.contract.notifications import base, events
from kilonova.contract.objects import types

CONTRACT: dict[str, Any] = novas.load("notifications")


def test_all_objects_and_no_others_are_declared() -> None:
    assert set(notifications.names()) == set(CONTRACT["objects"])


@pytest.mark.parametrize("name", sorted(CONTRACT["objects"]))
def test_fingerprint(name: str) -> None:
    cls, facts = notifications.load(name), CONTRACT["objects"][name]
    assert {field: repr(kind) for field, kind in cls.fields.items()} == {
        field: declared["repr"] for field, declared in facts["fields"].items()
    }
    assert fingerprint(cls, *_sources(cls)) == facts["fingerprint"]


def _sources(cls: type[base.WireObject]) -> list[Any]:
    """What a payload takes from which object is part of its fingerprint."""
    return [sorted(cls.SOURCES.items())] if issubclass(cls, base.Payload) else []


@pytest.mark.parametrize("name", sorted(n for n, facts in CONTRACT["objects"].items() if facts.get("populated_from")))
def test_sources(name: str) -> None:
    taken = CONTRACT["objects"][name]["populated_from"]
    assert {field: list(source) for field, source in notifications.load(name).SOURCES.items()} == taken


def test_event_types() -> None:
    assert set(events.EVENTS) == set(CONTRACT["event_types"])
    for name, facts in CONTRACT["event_types"].items():
        event = events.EVENTS[name]
        assert [event.notification] == facts["notification"], name
        assert list(event.publishers) == facts["publisher"], name
        assert [event.priority] == facts["priority"], name
        payload = notifications.load(event.notification).fields["payload"]._type._obj_name
        assert {payload: notifications.load(payload).VERSION} == facts["payloads"], name


def _objects_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "nova_object.name" in value:
            yield value
        for part in value.values():
            yield from _objects_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from _objects_in(part)


NOT_IN_THE_OBJECT = {("SharePayload", "export_location")}
"""What Nova's samples show though its objects do not have it."""


def test_the_objects_take_what_nova_says() -> None:
    """Every object in Nova's samples: its version, its fields, and each of their plain values."""
    seen = set()
    for name, sample in novas.samples("notification_samples").items():
        for said in _objects_in(sample):
            cls = notifications.load(said["nova_object.name"])
            assert said["nova_object.version"] == cls.VERSION, name
            seen.add(cls.__name__)
            for field, value in said["nova_object.data"].items():
                if (cls.__name__, field) in NOT_IN_THE_OBJECT:
                    continue
                kind, plain = cls.fields[field], isinstance(value, str | int | float | bool | None)
                if plain or not any(True for _ in types.object_names(kind)):
                    kind.coerce(cls(), field, kind.from_primitive(cls(), field, value))
    assert len(seen) > 30
