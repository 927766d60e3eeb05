"""Flavors and key pairs through the whole API."""

from typing import Any

import pytest
from tests.unit.api.conftest import PROJECT

SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKHEFhQBq0ZEk6SrZyWkB7cA1S8oQpM6+nqhv2n5Dkzk someone@somewhere"


def test_flavors_are_listed_in_pages(world: Any) -> None:
    for name in ("a", "b", "c"):
        world.flavor(name)
    first = world.get("/flavors?limit=2").json
    assert [flavor["id"] for flavor in first["flavors"]] == ["a", "b"]
    assert first["flavors_links"][0]["href"].endswith("/v2.1/flavors?limit=2&marker=b")
    second = world.get("/flavors?limit=2&marker=b").json
    assert [flavor["id"] for flavor in second["flavors"]] == ["c"]
    assert "flavors_links" not in second
    assert world.get("/flavors?marker=x").status_code == 400
    assert world.get("/flavors?marker=").status_code == 400
    assert world.get("/flavors?minRam=many").status_code == 400


def test_a_flavor_has_the_members_of_the_version(world: Any) -> None:
    world.flavor("a", extra_specs={"hw:cpu_policy": "shared"}, description="tiny")
    old = world.get("/flavors/a").json["flavor"]
    assert (old["swap"], old["rxtx_factor"], old["OS-FLV-DISABLED:disabled"]) == ("", 1.0, False)
    assert not {"description", "extra_specs"} & set(old)
    new = world.get("/flavors/a", version="2.102").json["flavor"]
    assert (new["swap"], new["description"], new["extra_specs"]) == (0, "tiny", {"hw:cpu_policy": "shared"})
    assert not {"rxtx_factor", "OS-FLV-DISABLED:disabled"} & set(new)
    assert world.get("/flavors/none").json == {
        "itemNotFound": {"code": 404, "message": "Flavor none could not be found."}
    }


def test_only_administrators_see_flavors_that_are_not_public(world: Any) -> None:
    world.flavor("open")
    world.flavor("hidden", is_public=False)
    assert [f["id"] for f in world.get("/flavors").json["flavors"]] == ["open"]
    listed = world.get("/flavors?is_public=None", user="admin").json["flavors"]
    assert [f["id"] for f in listed] == ["hidden", "open"]
    assert world.get("/flavors/hidden").status_code == 404
    assert world.get("/flavors/hidden", user="admin").status_code == 200
    assert world.post("/flavors/hidden/action", _access(PROJECT), user="admin").status_code == 200
    assert world.get("/flavors/hidden").json["flavor"]["name"] == "hidden"


def test_an_administrators_project_may_have_access_as_well(world: Any) -> None:
    world.flavor("open")
    world.flavor("hidden", is_public=False)
    assert [f["id"] for f in world.get("/flavors", user="admin").json["flavors"]] == ["open"]
    assert world.post("/flavors/hidden/action", _access(PROJECT), user="admin").status_code == 200
    assert [f["id"] for f in world.get("/flavors", user="admin").json["flavors"]] == ["hidden", "open"]
    closed = world.get("/flavors?is_public=false", user="admin").json["flavors"]
    assert [f["id"] for f in closed] == ["hidden"]


def _access(project: str) -> dict[str, Any]:
    return {"addTenantAccess": {"tenant": project}}


def test_a_key_pair_is_generated_shown_and_deleted(world: Any) -> None:
    made = world.post("/os-keypairs", {"keypair": {"name": "k"}})
    assert made.status_code == 200
    key = made.json["keypair"]
    assert key["private_key"].startswith("-----BEGIN RSA PRIVATE KEY-----")
    assert key["public_key"].startswith("ssh-rsa ")
    assert "type" not in key
    shown = world.get("/os-keypairs/k", version="2.2").json["keypair"]
    assert shown["fingerprint"] == key["fingerprint"]
    assert (shown["type"], shown["deleted"], shown["user_id"]) == ("ssh", False, "joe")
    assert world.request("DELETE", "/os-keypairs/k", version="2.2").status_code == 204
    assert world.get("/os-keypairs/k").status_code == 404
    assert world.request("DELETE", "/os-keypairs/k").status_code == 404


def test_a_certificate_is_generated(world: Any) -> None:
    key = world.post("/os-keypairs", {"keypair": {"name": "k", "type": "x509"}}, version="2.2").json["keypair"]
    assert key["public_key"].startswith("-----BEGIN CERTIFICATE-----")
    assert len(key["fingerprint"].split(":")) == 20
    imported = {"name": "l", "type": "x509", "public_key": key["public_key"]}
    again = world.post("/os-keypairs", {"keypair": imported}, version="2.2").json["keypair"]
    assert again["fingerprint"] == key["fingerprint"]


def test_a_key_is_imported_once(world: Any) -> None:
    body = {"keypair": {"name": "k", "public_key": SSH_KEY}}
    made = world.post("/os-keypairs", body, version="2.92")
    assert made.status_code == 201
    assert len(made.json["keypair"]["fingerprint"].split(":")) == 16
    assert world.post("/os-keypairs", body, version="2.92").status_code == 409
    broken = {"keypair": {"name": "l", "public_key": "ssh-rsa nonsense"}}
    assert world.post("/os-keypairs", broken, version="2.92").status_code == 400
    assert world.post("/os-keypairs", {"keypair": {"name": "m"}}, version="2.92").status_code == 400


def test_the_quota_of_key_pairs_holds(world: Any) -> None:
    world.conf.set_override("key_pairs", 1, group="quota")
    assert world.post("/os-keypairs", {"keypair": {"name": "k", "public_key": SSH_KEY}}).status_code == 200
    assert world.post("/os-keypairs", {"keypair": {"name": "l", "public_key": SSH_KEY}}).status_code == 403
    assert [k["keypair"]["name"] for k in world.get("/os-keypairs").json["keypairs"]] == ["k"]


@pytest.mark.parametrize(("user", "code"), [("joe", 403), ("admin", 200)])
def test_key_pairs_of_others_are_for_administrators(world: Any, user: str, code: int) -> None:
    assert world.get("/os-keypairs?user_id=ann", version="2.10", user=user).status_code == code


def test_key_pairs_are_listed_in_pages(world: Any) -> None:
    for name in ("a", "b", "c"):
        world.post("/os-keypairs", {"keypair": {"name": name, "public_key": SSH_KEY}})
    first = world.get("/os-keypairs?limit=2", version="2.35").json
    assert [k["keypair"]["name"] for k in first["keypairs"]] == ["a", "b"]
    assert first["keypairs_links"][0]["href"].endswith("limit=2&marker=b")
    assert world.get("/os-keypairs?marker=x", version="2.35").status_code == 400
    assert world.get("/os-keypairs?marker=", version="2.35").status_code == 400


def test_documents_of_versions_need_no_token(world: Any) -> None:
    import falcon.testing

    client = falcon.testing.TestClient(world.app)
    everything = client.simulate_get("/").json["versions"]
    assert [(v["id"], v["status"], v["version"]) for v in everything] == [
        ("v2.0", "DEPRECATED", ""),
        ("v2.1", "CURRENT", "2.104"),
    ]
    one = client.simulate_get("/v2.1/").json["version"]
    assert one["links"][0] == {"rel": "self", "href": "http://falconframework.org/v2.1/"}
    assert client.simulate_get("/v2.1").json == client.simulate_get("/v2.1/").json
    refused = client.simulate_get("/v2.1/", headers={"OpenStack-API-Version": "compute 2.999"})
    assert (refused.status_code, refused.headers["content-type"]) == (406, "application/json; charset=UTF-8")
    head = client.simulate_head("/v2.1/")
    assert (head.status_code, head.content) == (200, b"")
    assert client.simulate_get("/elsewhere").status_code == 300
    assert client.simulate_get("/v2.1/flavors").status_code == 401
