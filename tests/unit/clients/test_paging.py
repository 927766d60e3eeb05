"""Lists of other services: all pages are followed, to an end."""

from __future__ import annotations

import pytest
from tests import fakes

from kilonova.clients import paging
from kilonova.clients.http import ServiceError
from kilonova.contract import context

CTXT = context.RequestContext(user_id="u", project_id="project")
MANY = 7


def test_neutron() -> None:
    cloud = fakes.Cloud()
    network = cloud.neutron.network(project="project", cidr="10.0.0.0/16")
    ports = [cloud.neutron.port(network, project="project") for _ in range(MANY)]
    rest = cloud.clients.neutron.rest
    assert [each["id"] for each in rest.list(CTXT, "ports")] == ports
    assert [set(each) for each in rest.list(CTXT, "ports", fields=["mac_address"])] == [{"mac_address"}] * MANY
    assert [each["id"] for each in rest.list(CTXT, "ports", id=ports[2:], network_id=network)] == ports[2:]


def test_many_values_go_in_several_requests() -> None:
    cloud = fakes.Cloud()
    network = cloud.neutron.network(project="project", cidr="10.0.0.0/16")
    ports = [cloud.neutron.port(network, project="project") for _ in range(400)]
    cloud.neutron.page = 1000
    found = cloud.clients.neutron.rest.list(CTXT, "ports", id=ports, fields=["id"])
    assert [each["id"] for each in found] == ports
    assert len(cloud.neutron.calls) == 3


def test_cinder() -> None:
    cloud = fakes.Cloud()
    volumes = [cloud.cinder.volume() for _ in range(MANY)]
    cinder = cloud.clients.cinder
    assert [each["id"] for each in cinder.volume_list(CTXT)] == volumes
    assert [each["id"] for each in cinder.volume_list(CTXT, limit=2)] == volumes[:2]
    made = [cinder.attachment_create(CTXT, each, "server")["id"] for each in volumes]
    assert [each["id"] for each in cinder.attachments(CTXT, instance_id="server")] == made


def test_a_look_for_one_attachment_is_one_request() -> None:
    cloud = fakes.Cloud()
    volume = cloud.cinder.volume()
    made = cloud.clients.cinder.attachment_create(CTXT, volume, "server")
    cloud.cinder.calls.clear()
    found = cloud.clients.cinder.attachment_find(CTXT, volume, "server")
    assert found is not None
    assert found["id"] == made["id"]
    assert len(cloud.cinder.calls) == 1


def test_glance() -> None:
    cloud = fakes.Cloud()
    images = [cloud.glance.image() for _ in range(MANY)]
    assert [each["id"] for each in cloud.clients.glance.image_list(CTXT)] == images
    assert [each["id"] for each in cloud.clients.glance.image_list(CTXT, limit=1)] == images[:1]


def test_keystone() -> None:
    cloud = fakes.Cloud()
    for number in range(MANY):
        cloud.clients.keystone.registered_limit_create(CTXT, "nova-service-id", None, f"r{number}", number)
    found = cloud.clients.keystone.registered_limits(CTXT, "nova-service-id", None)
    assert [each["resource_name"] for each in found] == [f"r{number}" for number in range(MANY)]


def test_a_list_that_only_says_that_it_was_cut() -> None:
    items = [{"id": str(number)} for number in range(5)]

    def ask(params: object) -> dict[str, object]:
        marker = dict(params).get("marker")  # type: ignore[call-overload]
        start = 0 if marker is None else int(marker) + 1
        shown = items[start : start + 2]
        return {"limits": shown, "links": {"next": None}, "truncated": start + 2 < len(items)}

    assert list(paging.every("keystone", ask, {}, "limits")) == items


@pytest.mark.parametrize("more", [{"links": {"next": "http://x/y?marker=1"}}, {"truncated": True}])
def test_a_list_that_turns_in_circles(more: dict[str, object]) -> None:
    asked: list[object] = []

    def ask(params: object) -> dict[str, object]:
        asked.append(params)
        return {"limits": [{"id": "1"}], **more}

    with pytest.raises(ServiceError, match="does not end"):
        list(paging.every("keystone", ask, {}, "limits"))
    assert len(asked) == 2


def test_a_list_without_end() -> None:
    def ask(params: object) -> dict[str, object]:
        number = int(dict(params).get("marker", 0)) + 1  # type: ignore[call-overload]
        return {"limits": [{"id": str(number)}], "truncated": True}

    with pytest.raises(ServiceError, match="does not end"):
        list(paging.every("keystone", ask, {}, "limits"))
