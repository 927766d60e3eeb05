"""Metadata, tags and addresses of a server through the whole API."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.api import seeds

from kilonova.contract.nouns.server_tags import MOST

PUT_ONE = {"meta": {"a": "2"}}


def meta(world: Any, uuid: str, method: str = "GET", key: str = "", body: Any = None, **more: Any) -> Any:
    return world.request(method, f"/servers/{uuid}/metadata{key}", body, **more)


def tags(world: Any, uuid: str, method: str = "GET", name: str = "", body: Any = None, **more: Any) -> Any:
    return world.request(method, f"/servers/{uuid}/tags{name}", body, **{"version": "2.26", **more})


# ---------------------------------------------------------------- metadata


def test_metadata_is_added_to_replaced_and_removed(world: Any) -> None:
    uuid = seeds.server(world, metadata={"a": "1"})
    assert meta(world, uuid).json == {"metadata": {"a": "1"}}
    assert meta(world, uuid, "POST", body={"metadata": {"b": "2"}}).json == {"metadata": {"a": "1", "b": "2"}}
    assert meta(world, uuid, "PUT", "/a", {"meta": {"a": "3"}}).json == {"meta": {"a": "3"}}
    assert meta(world, uuid, key="/a").json == {"meta": {"a": "3"}}
    assert meta(world, uuid, "PUT", body={"metadata": {"c": "4"}}).json == {"metadata": {"c": "4"}}
    assert seeds.record(world, uuid)["metadata"] == {"c": "4"}
    assert meta(world, uuid, key="/a").status_code == 404
    gone = meta(world, uuid, "DELETE", "/c")
    assert (gone.status_code, gone.text) == (204, "")
    missing = meta(world, uuid, "DELETE", "/c")
    assert missing.json == {"itemNotFound": {"code": 404, "message": "Metadata item was not found"}}
    assert seeds.record(world, uuid)["metadata"] == {}


@pytest.mark.parametrize(
    ("method", "key", "body"),
    [
        ("POST", "", {"metadata": {"a": 1}}),
        ("POST", "", {"metadata": {"a": "x" * 256}}),
        ("POST", "", {"metadata": {"a/b": "x"}}),
        ("POST", "", {"meta": {"a": "x"}}),
        ("PUT", "", {"metadata": None}),
        ("PUT", "/a", {"meta": {"b": "2"}}),
        ("PUT", "/a", {"meta": {"a": "1", "b": "2"}}),
        ("PUT", "/a", {"meta": {}}),
    ],
)
def test_metadata_that_is_no_metadata_changes_nothing(world: Any, method: str, key: str, body: Any) -> None:
    uuid = seeds.server(world, metadata={"a": "1"})
    assert meta(world, uuid, method, key, body).status_code == 400
    assert seeds.record(world, uuid)["metadata"] == {"a": "1"}


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"vm_state": "error"}, "Cannot 'update metadata' instance {} while it is in vm_state error"),
        ({"vm_state": "resized"}, "Cannot 'update metadata' instance {} while it is in vm_state resized"),
        ({"launched_at": None}, "Instance {} is in an invalid state for 'update metadata'"),
        ({"locked": True, "locked_by": "owner"}, "Instance {} is locked"),
    ],
)
def test_metadata_of_a_server_in_the_wrong_state(world: Any, state: dict[str, Any], message: str) -> None:
    uuid = seeds.server(world, metadata={"a": "1"}, **state)
    refused = meta(world, uuid, "PUT", "/a", PUT_ONE)
    assert (refused.status_code, refused.json["conflictingRequest"]["message"]) == (409, message.format(uuid))
    assert meta(world, uuid, "DELETE", "/a").status_code == 409
    assert seeds.record(world, uuid)["metadata"] == {"a": "1"}
    assert meta(world, uuid).status_code == 200


def test_metadata_may_change_while_a_task_runs(world: Any) -> None:
    uuid = seeds.server(world, task_state="rebooting")
    assert meta(world, uuid, "POST", body={"metadata": {"a": "1"}}).status_code == 200


def test_metadata_has_a_quota(world: Any) -> None:
    world.conf.set_override("metadata_items", 2, group="quota")
    uuid = seeds.server(world, metadata={"a": "1"})
    over = meta(world, uuid, "POST", body={"metadata": {"b": "2", "c": "3"}})
    assert over.status_code == 403
    assert "2" in over.json["forbidden"]["message"]
    assert seeds.record(world, uuid)["metadata"] == {"a": "1"}
    assert meta(world, uuid, "PUT", body={"metadata": {"b": "2", "c": "3"}}).status_code == 200


def test_metadata_of_a_deleted_or_foreign_server(world: Any) -> None:
    uuid = seeds.server(world, metadata={"a": "1"})
    for method, key, body in (("GET", "", None), ("PUT", "/a", PUT_ONE), ("DELETE", "/a", None)):
        assert meta(world, uuid, method, key, body, project=seeds.OTHER).status_code == 404
        assert meta(world, seeds.NOWHERE, method, key, body).status_code == 404
    assert seeds.record(world, uuid)["metadata"] == {"a": "1"}


def test_an_item_that_there_is_not_is_said_before_the_state(world: Any) -> None:
    uuid = seeds.server(world, metadata={"a": "1"}, vm_state="error")
    assert meta(world, uuid, "DELETE", "/b").status_code == 404
    assert meta(world, uuid, "DELETE", "/a").status_code == 409


# ---------------------------------------------------------------- tags


def test_tags_are_added_found_and_removed(world: Any) -> None:
    uuid = seeds.server(world)
    added = tags(world, uuid, "PUT", "/blue")
    assert (added.status_code, added.text) == (201, "")
    assert added.headers["location"].endswith(f"/v2.1/servers/{uuid}/tags/blue")
    assert tags(world, uuid, "PUT", "/blue").status_code == 204
    assert tags(world, uuid, name="/blue").status_code == 204
    assert tags(world, uuid, name="/red").status_code == 404
    assert tags(world, uuid, "PUT", body={"tags": ["x", "y", "x"]}).json == {"tags": ["x", "y"]}
    assert tags(world, uuid).json == {"tags": ["x", "y"]}
    assert tags(world, uuid, "DELETE", "/x").status_code == 204
    missing = tags(world, uuid, "DELETE", "/x")
    assert missing.status_code == 404
    assert uuid in missing.json["itemNotFound"]["message"]
    assert tags(world, uuid, "DELETE").status_code == 204
    assert tags(world, uuid).json == {"tags": []}


def test_tags_begin_in_2_26(world: Any) -> None:
    uuid = seeds.server(world)
    assert tags(world, uuid, version="2.25").status_code == 404


def test_tags_that_are_none(world: Any) -> None:
    uuid = seeds.server(world, tags=["a"])
    assert tags(world, uuid, "PUT", "/a,b").status_code == 400
    assert tags(world, uuid, "PUT", "/" + "x" * 61).status_code == 400
    assert tags(world, uuid, "PUT", body={"tags": ["a/b"]}).status_code == 400
    assert tags(world, uuid, "PUT", body={"tags": [f"t{n}" for n in range(MOST + 1)]}).status_code == 400
    assert seeds.record(world, uuid)["tags"] == ["a"]


def test_a_server_has_so_many_tags_and_no_more(world: Any) -> None:
    uuid = seeds.server(world, tags=[f"t{n}" for n in range(MOST)])
    refused = tags(world, uuid, "PUT", "/new")
    assert refused.status_code == 400
    assert str(MOST) in refused.json["badRequest"]["message"]
    assert len(seeds.record(world, uuid)["tags"]) == MOST


@pytest.mark.parametrize("state", ["building", "error", "shelved_offloaded"])
def test_tags_of_a_server_in_the_wrong_state(world: Any, state: str) -> None:
    uuid = seeds.server(world, vm_state=state, tags=["a"])
    for method, name, body in (("PUT", "/b", None), ("PUT", "", {"tags": []}), ("DELETE", "", None)):
        assert tags(world, uuid, method, name, body).status_code == 409
    refused = tags(world, uuid, "DELETE", "/a").json["conflictingRequest"]["message"]
    assert refused == f"Cannot 'delete tag' instance {uuid} while it is in vm_state {state}"
    assert tags(world, uuid).json == {"tags": ["a"]}


def test_tags_of_a_foreign_server(world: Any) -> None:
    uuid = seeds.server(world, tags=["a"])
    for method, name in (("GET", ""), ("GET", "/a"), ("PUT", "/b"), ("DELETE", "/a"), ("DELETE", "")):
        assert tags(world, uuid, method, name, project=seeds.OTHER).status_code == 403
    assert seeds.record(world, uuid)["tags"] == ["a"]
    gone = seeds.server(world, deleted=1)
    assert tags(world, gone, project=seeds.OTHER).status_code == 403
    assert tags(world, gone).status_code == 404


# ---------------------------------------------------------------- addresses


def test_addresses_by_network(world: Any) -> None:
    uuid = seeds.server(world, network_info=seeds.VIF % "private")
    shown = [{"version": 4, "addr": "10.0.0.5"}, {"version": 4, "addr": "172.24.4.9"}]
    assert world.get(f"/servers/{uuid}/ips").json == {"addresses": {"private": shown}}
    assert world.get(f"/servers/{uuid}/ips/private").json == {"private": shown}
    missing = world.get(f"/servers/{uuid}/ips/public")
    assert missing.json["itemNotFound"]["message"] == "Instance is not a member of specified network"
    assert world.get(f"/servers/{uuid}/ips", project=seeds.OTHER).status_code == 404


def test_b022_network_without_a_name(world: Any) -> None:
    uuid = seeds.server(world, network_info=seeds.VIF % "")
    found = world.get(f"/servers/{uuid}/ips")
    assert (found.status_code, list(found.json["addresses"])) == (200, [""])
    whole = world.get(f"/servers/{uuid}")
    assert (whole.status_code, list(whole.json["server"]["addresses"])) == (200, [""])
