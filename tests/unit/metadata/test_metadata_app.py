"""The metadata service with real databases and Neutron's fake: who is told what."""

import hashlib
import hmac
import json
import shutil
import types

import pytest
from falcon import testing
from tests import fakes
from tests.fakes import guests

from kilonova.contract import exceptions, objects
from kilonova.contract.context import admin
from kilonova.db.engine import Database
from kilonova.db.migrations import sync
from kilonova.db.objects import instance as records
from kilonova.metadata import app, cache, vendordata

SECRET = "sesame"
PROJECT = "11111111111111111111111111111111"


@pytest.fixture(scope="session")
def cell_template(tmp_path_factory):
    path = tmp_path_factory.mktemp("metadata") / "cell.db"
    database = Database(f"sqlite:///{path}")
    sync.sync_main(database)
    database.dispose()
    return path


@pytest.fixture
def database(cell_template, tmp_path):
    shutil.copy(cell_template, tmp_path / "cell.db")
    made = Database(f"sqlite:///{tmp_path}/cell.db")
    yield made
    made.dispose()


class OneCell:
    """All servers are in one cell, if they are anywhere."""

    def __init__(self, database):
        self.own = database
        self.cell = types.SimpleNamespace(database=database)
        self.known = set()
        self.asked = 0

    def for_instance(self, uuid):
        self.asked += 1
        return self.cell if uuid in self.known else None


@pytest.fixture
def world(database):
    cloud = fakes.Cloud()
    cells = OneCell(database)
    conf = guests.configuration(
        neutron__service_metadata_proxy=True,
        neutron__metadata_proxy_shared_secret=SECRET,
        api__metadata_cache_expiration=60,
    )

    def server(**changes):
        instance = guests.instance(project_id=PROJECT, key_name="k", key_data="ssh-rsa A", id=None, **changes)
        instance.keypairs = objects.KeyPairList(
            objects=[objects.KeyPair(name="k", type="ssh", public_key="ssh-rsa A", user_id="u", fingerprint="f")]
        )
        instance.info_cache = objects.InstanceInfoCache(instance_uuid=instance.uuid, network_info=[guests.ovs_port()])
        database.run(records.create, admin(), instance)
        cells.known.add(instance.uuid)
        return instance

    def client():
        return testing.TestClient(app.make_app(conf, cells, cloud.clients))

    return types.SimpleNamespace(cloud=cloud, cells=cells, conf=conf, server=server, client=client)


def signed(instance, secret=SECRET, **changes):
    signature = hmac.new(secret.encode(), instance.uuid.encode(), hashlib.sha256).hexdigest()
    return {
        "X-Instance-ID": instance.uuid,
        "X-Tenant-ID": PROJECT,
        "X-Instance-ID-Signature": signature,
        "X-Forwarded-For": "10.0.0.5",
    } | changes


def test_a_signed_request_is_answered(world):
    instance = world.server(metadata={"role": "web"}, hostname="vm")
    reply = world.client().simulate_get("/openstack/latest/meta_data.json", headers=signed(instance))
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/json"
    found = json.loads(reply.text)
    assert found["uuid"] == instance.uuid
    assert found["meta"] == {"role": "web"}
    assert found["hostname"] == "vm.novalocal"
    assert found["public_keys"] == {"k": "ssh-rsa A"}


def test_user_data_comes_as_it_was_given(world):
    import base64

    instance = world.server(user_data=base64.b64encode(b"#!/bin/sh\n\xff").decode())
    client = world.client()
    assert client.simulate_get("/openstack/latest/user_data", headers=signed(instance)).content == b"#!/bin/sh\n\xff"
    assert client.simulate_get("/latest/user-data", headers=signed(instance)).content == b"#!/bin/sh\n\xff"
    without = world.server()
    assert client.simulate_get("/openstack/latest/user_data", headers=signed(without)).status_code == 404


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"X-Instance-ID-Signature": "0" * 64}, 403),
        ({"X-Instance-ID-Signature": "é"}, 403),
        ({"X-Tenant-ID": "somebody else"}, 404),
        ({"X-Instance-ID-Signature": None}, 400),
        ({"X-Tenant-ID": None}, 400),
        ({"X-Instance-ID": None}, 400),
    ],
)
def test_who_is_not_trusted_learns_nothing(world, changes, status):
    headers = {name: value for name, value in signed(world.server(), **changes).items() if value is not None}
    reply = world.client().simulate_get("/openstack/latest/meta_data.json", headers=headers)
    assert reply.status_code == status
    assert "uuid" not in reply.text


def test_an_unknown_server_and_an_unknown_path(world):
    client = world.client()
    assert client.simulate_get("/openstack", headers=signed(guests.instance())).status_code == 404
    assert client.simulate_get("/openstack/1999-01-01", headers=signed(world.server())).status_code == 404
    assert client.simulate_get("/latest/meta-data/nothing", headers=signed(world.server())).status_code == 404


def test_versions_are_listed_to_anybody(world):
    reply = world.client().simulate_get("/")
    assert reply.text.split()[0] == "1.0"
    assert reply.text.split()[-1] == "latest"


def test_ec2_facts(world):
    network = world.cloud.neutron.network()
    instance = world.server(root_device_name="/dev/vda")
    group = world.cloud.neutron.security_group("web", project=PROJECT)
    world.cloud.neutron.port(network, project=PROJECT, device_id=instance.uuid, security_groups=[group])
    client = world.client()

    def read(path):
        return client.simulate_get(f"/latest/meta-data/{path}", headers=signed(instance)).text

    assert read("instance-id").startswith("i-0000")
    assert read("ami-id").startswith("ami-0000")
    assert read("local-ipv4") == "10.0.0.5"
    assert read("security-groups") == "web"
    assert read("block-device-mapping/root") == "/dev/vda"
    assert read("public-keys/0/openssh-key") == "ssh-rsa A"
    assert read("instance-type") == "m1.tiny"


def test_a_record_is_read_once_while_it_is_fresh(world):
    instance = world.server()
    client = world.client()
    for path in ("/openstack", "/openstack/latest", "/openstack/latest/meta_data.json"):
        client.simulate_get(path, headers=signed(instance))
    assert world.cells.asked == 1


def test_a_password_is_posted_once(world):
    instance = world.server()
    client = world.client()
    path = "/openstack/latest/password"
    assert client.simulate_get(path, headers=signed(instance)).text == ""
    secret = "x" * 600
    assert client.simulate_post(path, body=secret, headers=signed(instance)).status_code == 200
    assert client.simulate_get(path, headers=signed(instance)).text == secret
    assert client.simulate_post(path, body="other", headers=signed(instance)).status_code == 409
    assert client.simulate_put(path, body="other", headers=signed(instance)).status_code == 400
    other = world.server()
    assert client.simulate_post(path, body="x" * 1021, headers=signed(other)).status_code == 400
    assert client.simulate_get("/openstack/2012-08-10/password", headers=signed(other)).status_code == 404


def test_two_services_do_not_both_take_a_password(world):
    instance = world.server()
    first, second = world.client(), world.client()
    for client in (first, second):
        client.simulate_get("/openstack/latest/password", headers=signed(instance))
    assert first.simulate_post("/openstack/latest/password", body="a", headers=signed(instance)).status_code == 200
    assert second.simulate_post("/openstack/latest/password", body="b", headers=signed(instance)).status_code == 409


def test_by_address(world):
    world.conf.set_override("service_metadata_proxy", False, "neutron")
    instance = world.server()
    network = world.cloud.neutron.network()
    port = world.cloud.neutron.port(network, project=PROJECT, device_id=instance.uuid, device_owner="compute:nova")
    address = world.cloud.neutron.ports[port]["fixed_ips"][0]["ip_address"]
    client = world.client()
    found = client.simulate_get("/openstack/latest/meta_data.json", remote_addr=address)
    assert json.loads(found.text)["uuid"] == instance.uuid
    assert client.simulate_get("/openstack", remote_addr="203.0.113.9").status_code == 404
    forged = client.simulate_get("/openstack", remote_addr="203.0.113.9", headers=signed(instance))
    assert forged.status_code == 404


def by_provider(address="10.0.0.9", provider="lb", secret=SECRET):
    signature = hmac.new(secret.encode(), provider.encode(), hashlib.sha256).hexdigest()
    return {
        "X-Metadata-Provider": provider,
        "X-Metadata-Provider-Signature": signature,
        "X-Forwarded-For": f"{address}, 192.0.2.1",
    }


def test_behind_a_provider(world):
    neutron = world.cloud.neutron
    instance = world.server()
    network, elsewhere = neutron.network(), neutron.network()
    neutron.subnets[neutron.subnet(network, "10.0.0.0/24")]["advanced_service_providers"] = "lb"
    neutron.subnet(elsewhere, "10.0.0.0/24")
    owned = {"project": PROJECT, "device_owner": "compute:nova"}
    port = neutron.port(network, device_id=instance.uuid, **owned)
    neutron.ports[port]["fixed_ips"] = [{"ip_address": "10.0.0.9", "subnet_id": "s"}]
    other = neutron.port(elsewhere, device_id=world.server().uuid, **owned)
    neutron.ports[other]["fixed_ips"] = [{"ip_address": "10.0.0.9", "subnet_id": "t"}]
    client = world.client()
    found = client.simulate_get("/openstack/latest/meta_data.json", headers=by_provider())
    assert found.json["uuid"] == instance.uuid
    assert client.simulate_get("/openstack", headers=by_provider(secret="wrong")).status_code == 403
    assert client.simulate_get("/openstack", headers=by_provider(provider="nobody")).status_code == 400
    assert client.simulate_get("/openstack", headers=by_provider(address="10.0.0.99")).status_code == 400


def test_forwarded_for_headers_of_a_signed_proxy(world):
    """A guest may put in front what it likes; the proxy appends who asked it, and signs neither."""
    neutron = world.cloud.neutron
    network = neutron.network()
    neutron.subnets[neutron.subnet(network, "10.0.0.0/24")]["advanced_service_providers"] = "lb"
    mine, other = world.server(), world.server()
    for instance, address in ((mine, "10.0.0.9"), (other, "10.0.0.7")):
        port = neutron.port(network, device_id=instance.uuid, project=PROJECT, device_owner="compute:nova")
        neutron.ports[port]["fixed_ips"] = [{"ip_address": address, "subnet_id": "s"}]
    client = world.client()

    def ask(forwarded):
        headers = {**by_provider(), "X-Forwarded-For": forwarded}
        return client.simulate_get("/openstack/latest/meta_data.json", headers=headers)

    for honest in ("10.0.0.9", "10.0.0.9, 192.0.2.1", "unknown, 10.0.0.9", "127.0.0.1,10.0.0.9,10.0.0.9"):
        assert ask(honest).json["uuid"] == mine.uuid
    for forged in ("10.0.0.7, 10.0.0.9", "10.0.0.9, 10.0.0.7", "10.0.0.7, 10.0.0.9, 192.0.2.1"):
        answer = ask(forged)
        assert answer.status_code == 400
        assert other.uuid not in answer.text
    for senseless in ("", "unknown", ",".join(f"10.0.1.{number}" for number in range(100)), "10.0.0.9&device_id=x"):
        assert ask(senseless).status_code == 400
    by_id = signed(mine, **{"X-Forwarded-For": "10.0.0.7, 10.0.0.9"})
    assert client.simulate_get("/openstack/latest/meta_data.json", headers=by_id).json["uuid"] == mine.uuid


def test_a_broken_database_is_no_404(world):
    instance = world.server()
    world.cells.for_instance = lambda uuid: (_ for _ in ()).throw(RuntimeError("secret detail"))
    reply = world.client().simulate_get("/openstack", headers=signed(instance))
    assert reply.status_code == 500
    assert "secret detail" not in reply.text


def test_vendor_data(world, tmp_path):
    file = tmp_path / "vendor.json"
    file.write_text('{"a": [1]}')
    world.conf.set_override("vendordata_jsonfile_path", str(file), "api")
    instance = world.server()
    client = world.client()
    assert client.simulate_get("/openstack/latest/vendor_data.json", headers=signed(instance)).json == {"a": [1]}
    found = client.simulate_get("/openstack/latest/vendor_data2.json", headers=signed(instance)).json
    assert found == {"static": {"a": [1]}}


def test_a_provider_that_is_not_built_is_said_at_start(world):
    world.conf.set_override("vendordata_providers", ["DynamicJSON"], "api")
    with pytest.raises(exceptions.InvalidConfiguration, match="DynamicJSON"):
        world.client()
    world.conf.set_override("vendordata_providers", [], "api")
    assert vendordata.load(world.conf).static is None
    reply = world.client().simulate_get("/openstack/latest/vendor_data.json", headers=signed(world.server()))
    assert reply.status_code == 404


@pytest.mark.parametrize("content", [None, "{broken"])
def test_vendor_data_that_cannot_be_read_are_said_at_start(world, tmp_path, content):
    file = tmp_path / "vendor.json"
    if content is not None:
        file.write_text(content)
    world.conf.set_override("vendordata_jsonfile_path", str(file), "api")
    with pytest.raises(exceptions.InvalidConfiguration, match=r"vendor\.json"):
        world.client()


def test_the_own_cell_needs_no_mappings(world):
    world.conf.set_override("local_metadata_per_cell", True, "api")
    instance = world.server()
    world.cells.known.clear()
    assert world.client().simulate_get("/openstack", headers=signed(instance)).status_code == 200


def test_cache_expires_and_is_bounded():
    now = [0.0]
    kept = cache.Cache(10, most=2, now=lambda: now[0])
    assert kept.get("a", lambda: 1) == 1
    assert kept.get("a", lambda: 2) == 1
    now[0] = 11
    assert kept.get("a", lambda: 3) == 3
    kept.get("b", lambda: 1)
    kept.get("c", lambda: 1)
    assert kept.get("a", lambda: 4) == 4
    assert cache.Cache(0).get("a", lambda: 5) == 5
    with pytest.raises(exceptions.InstanceNotFound):
        kept.get("x", lambda: (_ for _ in ()).throw(exceptions.InstanceNotFound(instance_id="x")))


def test_load_balancers_may_ask_without_being_a_guest(world):
    client = world.client()
    assert client.simulate_get("/healthcheck").status_code == 200
    assert client.simulate_head("/healthcheck").status_code == 204
