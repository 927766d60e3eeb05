"""Notifications as they go out."""

from __future__ import annotations

import pytest

from kilonova.contract import notifications
from kilonova.contract.notifications import events
from kilonova.contract.objects import base


def test_a_notification_is_plain_data() -> None:
    payload = notifications.load("AggregateCachePayload")(
        host="h1", id=1, images_cached=["i1"], images_failed=[], index=1, name="a", total=2,
        uuid="5f2b1d7e-1f4e-4a3c-8a57-0d3f1f1b2c3d",
    )  # fmt: skip
    event_type = notifications.load("EventType")(object="aggregate", action="cache_images", phase="progress")
    said = notifications.load("AggregateCacheNotification")(
        event_type=event_type,
        priority="info",
        publisher=notifications.load("NotificationPublisher")(host="c1", source="nova-conductor"),
        payload=payload,
    )
    assert events.EVENTS[str(event_type)].notification == said.obj_name()
    primitive = said.payload.obj_to_primitive()
    assert primitive["nova_object.namespace"] == "nova"
    assert primitive["nova_object.data"]["images_cached"] == ["i1"]


def test_an_event_type_without_a_phase() -> None:
    made = notifications.load("EventType")
    assert str(made(object="instance", action="lock")) == "instance.lock"
    assert str(made(object="instance", action="lock", phase=None)) == "instance.lock"


def test_values_are_of_the_closed_sets() -> None:
    with pytest.raises(ValueError, match="dance"):
        notifications.load("EventType")(object="instance", action="dance")
    payload = notifications.load("InstancePayload")
    assert payload(auto_disk_config=True).auto_disk_config == "AUTO"
    assert payload(auto_disk_config="MANUAL").auto_disk_config == "MANUAL"
    assert payload(power_state=1).power_state == "running"


def test_nobody_can_send_one_to_us() -> None:
    with pytest.raises(base.UnsupportedObjectError):
        base.WireObject.obj_class_from_name("EventType", "1.22")
