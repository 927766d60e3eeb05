"""The clients against real Keystone, Placement, Neutron, Glance and Cinder: those of the cloud of profile full.

What the tests make they remove.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator

import pytest
from keystoneauth1 import loading, session
from keystoneauth1.identity import v3
from tests.real.clouds import Started

from kilonova import conf as options
from kilonova.api.servers import hostnames
from kilonova.clients.bundle import Clients
from kilonova.clients.http import ServiceError, ServiceUnavailable
from kilonova.clients.placement import client as placement_client
from kilonova.contract import context, exceptions, objects

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800), pytest.mark.xdist_group("full")]


def credentials(cloud: Started, user: str, project: str) -> dict[str, str]:
    return {
        "auth_url": cloud.site.url("keystone", "/v3"),
        "username": user,
        "password": cloud.site.user_password(user),
        "project_name": project,
        "user_domain_id": "default",
        "project_domain_id": "default",
    }


def logged_in(auth: dict[str, str], **more) -> context.RequestContext:
    """A request context as the API's middleware makes it: token, project and catalog of a user."""
    access = v3.Password(**auth).get_access(session.Session())
    catalog = [
        {
            "type": service["type"],
            "name": service.get("name", ""),
            "endpoints": [
                {f"{each['interface']}URL": each["url"], "region": each["region"]} for each in service["endpoints"]
            ],
        }
        for service in access.service_catalog.catalog
    ]
    merged = [
        {**each, "endpoints": [{key: value for point in each["endpoints"] for key, value in point.items()}]}
        for each in catalog
    ]
    return context.RequestContext(
        user_id=access.user_id,
        project_id=access.project_id,
        auth_token=access.auth_token,
        roles=list(access.role_names),
        service_catalog=merged,
        **more,
    )


@pytest.fixture(scope="module")
def clients(full: Started) -> Clients:
    """Configured as nova.conf would be: every group with the service user's credentials."""
    auth = credentials(full, "nova", "service")
    conf = options.load([])
    for group in ("placement", "neutron", "cinder", "keystone", "service_user"):
        conf.set_override("auth_type", "password", group)
        plugin_options = loading.get_auth_plugin_conf_options("password")
        conf.register_opts(plugin_options, group=group)
        for name, value in auth.items():
            conf.set_override(name, value, group)
    conf.set_override("send_service_user_token", True, "service_user")
    return Clients.from_conf(conf)


@pytest.fixture(scope="module")
def user(full: Started) -> context.RequestContext:
    return logged_in(credentials(full, "demo", "demo"))


@pytest.fixture(scope="module")
def admin() -> context.RequestContext:
    """An admin context without a token: the service's own credentials are used."""
    return context.admin()


@pytest.fixture
def server(user) -> objects.Instance:
    return objects.Instance(
        uuid=str(uuid.uuid4()), project_id=user.project_id, hostname="real-test", availability_zone="nova"
    )


# --- placement ---------------------------------------------------------------------------------


@pytest.fixture
def provider(clients, admin) -> Iterator[placement_client.Provider]:
    placement = clients.placement
    made = placement.provider_ensure(admin, str(uuid.uuid4()), f"real-test-{uuid.uuid4().hex[:8]}")
    inventory = {"VCPU": {"total": 4}, "MEMORY_MB": {"total": 1000}, "DISK_GB": {"total": 10}}
    generation = placement.inventory_set(admin, made.uuid, inventory, made.generation)
    placement.traits_set(admin, made.uuid, [f"CUSTOM_REAL_{made.uuid[:8].upper()}"], generation)
    yield made
    for consumer in placement.allocations_by_provider(admin, made.uuid):
        placement.allocations_delete(admin, consumer, force=True)
    placement.provider_delete(admin, made.uuid)


def candidates(clients, admin, provider, memory=400):
    trait = f"CUSTOM_REAL_{provider.uuid[:8].upper()}"
    query = [("resources", f"VCPU:1,MEMORY_MB:{memory}"), ("required", trait), ("limit", "10")]
    return clients.placement.allocation_candidates(admin, query)


def test_claims_decide_who_gets_the_room(clients, admin, provider):
    placement = clients.placement
    requests, summaries = candidates(clients, admin, provider)
    assert summaries[provider.uuid]["resources"]["MEMORY_MB"] == {"capacity": 1000, "used": 0}
    consumers = [str(uuid.uuid4()) for _ in range(3)]
    outcomes = [placement.claim(admin, each, requests[0], "p", "u") for each in consumers]
    assert outcomes == [True, True, False]
    assert placement.claim(admin, consumers[0], requests[0], "p", "u") is True, "a repeat"
    held = placement.allocations_get(admin, consumers[0])
    assert held.resources() == {provider.uuid: {"VCPU": 1, "MEMORY_MB": 400}}
    assert candidates(clients, admin, provider)[0] == []
    assert placement.allocations_delete(admin, consumers[0]) is True
    assert placement.allocations_delete(admin, consumers[0]) is False
    assert len(candidates(clients, admin, provider)[0]) == 1


def test_generations(clients, admin, provider):
    placement = clients.placement
    inventory, generation = placement.inventory_get(admin, provider.uuid)
    placement.aggregates_set(admin, provider.uuid, [str(uuid.uuid4())], generation)
    with pytest.raises(placement_client.GenerationConflict):
        placement.inventory_set(admin, provider.uuid, inventory, generation)
    wanted = {provider.uuid: {"resources": {"VCPU": 1}}}
    consumer = str(uuid.uuid4())
    placement.allocations_put(admin, consumer, wanted, "p", "u", None)
    with pytest.raises(placement_client.AllocationConflict):
        placement.allocations_put(admin, consumer, wanted, "p", "u", None)
    _, generation = placement.inventory_get(admin, provider.uuid)
    with pytest.raises(placement_client.InventoryInUse):
        placement.inventory_set(admin, provider.uuid, {}, generation)


def test_custom_resources_and_moves(clients, admin, provider):
    placement = clients.placement
    inventory, generation = placement.inventory_get(admin, provider.uuid)
    placement.inventory_set(admin, provider.uuid, inventory | {"CUSTOM_REAL_TEST": {"total": 1}}, generation)
    old, new = str(uuid.uuid4()), str(uuid.uuid4())
    wanted = {provider.uuid: {"resources": {"CUSTOM_REAL_TEST": 1}}}
    placement.allocations_put(admin, old, wanted, "p", "u", None)
    body = placement_client.allocation_body
    generation = placement.allocations_get(admin, old).generation
    moved = {old: body({}, "p", "u", generation), new: body(wanted, "p", "u", None)}
    assert placement.allocations_move(admin, moved) is True
    assert placement.allocations_get(admin, old).allocations == {}
    assert placement.allocations_by_provider(admin, provider.uuid) == {new: {"CUSTOM_REAL_TEST": 1}}


# --- neutron -----------------------------------------------------------------------------------


@pytest.fixture
def network(clients, user) -> Iterator[str]:
    rest = clients.neutron.rest
    made = rest.create(user, "networks", {"name": "real-test"})
    rest.create(user, "subnets", {"network_id": made["id"], "ip_version": 4, "cidr": "198.51.100.0/28"})
    yield made["id"]
    for port in rest.list(user, "ports", network_id=made["id"]):
        if not port["device_owner"].startswith("network:"):
            rest.delete(user, "ports", port["id"], admin=True)
    rest.delete(user, "networks", made["id"])


def test_ports_of_a_build(clients, user, server, network):
    neutron = clients.neutron
    rest = neutron.rest
    mine = rest.create(user, "ports", {"network_id": network})
    requested = [objects.NetworkRequest(port_id=mine["id"]), objects.NetworkRequest(network_id=network)]
    assert neutron.validate_networks(user, requested, 1) == 1
    found = neutron.resource_requests(user, requested)
    assert found.groups == []
    info = neutron.allocate(user, server, requested, ["default"], "fake-host")
    assert info[0]["id"] == mine["id"]
    assert [vif["preserve_on_delete"] for vif in info] == [True, False]
    assert all(vif["network"]["label"] == "real-test" for vif in info)
    assert all(vif["network"]["subnets"][0]["ips"][0]["address"].startswith("198.51.100.") for vif in info)
    ports = neutron.ports_by_device(user, server.uuid, server.project_id)
    assert {port["binding:host_id"] for port in ports} == {"fake-host"}
    assert {port["device_owner"] for port in ports} == {"compute:nova"}
    again = neutron.network_info(user, server, cached=info)
    assert [vif["id"] for vif in again] == [vif["id"] for vif in info]
    assert set(neutron.security_groups_for(user, [vif["id"] for vif in info])) == {vif["id"] for vif in info}
    with pytest.raises(exceptions.PortInUse):
        neutron.validate_networks(user, requested[:1], 1)
    neutron.deallocate(user, server, cached=info)
    neutron.deallocate(user, server, cached=info)
    left = rest.list(user, "ports", network_id=network, device_owner="")
    assert [port["id"] for port in left] == [mine["id"]]
    assert left[0]["device_id"] == ""


def test_refused_address_leaves_nothing(clients, user, server, network):
    request = objects.NetworkRequest(network_id=network, address="203.0.113.9")
    with pytest.raises(exceptions.InvalidInput):
        clients.neutron.allocate(user, server, [request], None, "fake-host")
    assert clients.neutron.ports_by_device(user, server.uuid, server.project_id) == []


def test_a_build_repeated_finds_its_port(clients, user, server, network):
    requested = [objects.NetworkRequest(network_id=network)]
    [first] = clients.neutron.allocate(user, server, requested, None, "fake-host")
    [second] = clients.neutron.allocate(user, server, requested, None, "other-host")
    assert first["id"] == second["id"]
    clients.neutron.deallocate(user, server)


def test_out_of_addresses(clients, user, server, network):
    too_many = [objects.NetworkRequest(network_id=network)] * 20
    with pytest.raises(exceptions.NoMoreFixedIps):
        clients.neutron.allocate(user, server, too_many, None, "fake-host")
    assert clients.neutron.ports_by_device(user, server.uuid, server.project_id) == [], "the last try left nothing"


def test_an_admin_without_token_may_clean_up(clients, user, admin, server, network):
    clients.neutron.allocate(user, server, [objects.NetworkRequest(network_id=network)], None, "fake-host")
    clients.neutron.deallocate(admin, server)
    assert clients.neutron.ports_by_device(admin, server.uuid, server.project_id) == []


@pytest.mark.parametrize(("name", "count"), [("é", 2), ("a" * 63, 2), ("a" * 60 + "-b", 3), ("-x-", 1), ("A_b.", 1)])
def test_r24_derived_names_are_taken(clients, user, server, network, name, count):
    server.hostname = hostnames.of_server(None, name, server.uuid, count - 1, count)
    [vif] = clients.neutron.allocate(user, server, [objects.NetworkRequest(network_id=network)], None, None)
    assert clients.neutron.rest.port_show(user, vif["id"])["dns_name"] == server.hostname.lower()
    clients.neutron.deallocate(user, server)


def test_r24_a_name_that_is_none_is_refused_in_neutrons_words(clients, user, server, network):
    server.hostname = "a-"
    with pytest.raises(ServiceError) as caught:
        clients.neutron.allocate(user, server, [objects.NetworkRequest(network_id=network)], None, None)
    assert caught.value.refuses
    assert "'a-' not a valid PQDN or FQDN" in (caught.value.words or "")
    assert clients.neutron.ports_by_device(user, server.uuid, server.project_id) == []


# --- glance ------------------------------------------------------------------------------------


def test_image_there_and_back(clients, user, tmp_path):
    glance = clients.glance
    image = {"name": "real-test", "disk_format": "raw", "container_format": "bare", "is_public": False,
             "properties": {"hw_disk_bus": "virtio"}}  # fmt: skip
    made = glance.image_create(user, image)
    try:
        with pytest.raises(exceptions.ImageUnacceptable):
            glance.image_download(user, made["id"], str(tmp_path / "none"))
        glance.image_upload(user, made["id"], io.BytesIO(b"k" * 300_000))
        shown = glance.image_show(user, made["id"])
        assert (shown["status"], shown["size"], shown["properties"]["hw_disk_bus"]) == ("active", 300_000, "virtio")
        glance.fetch(user, made["id"], str(tmp_path / "image"))
        assert (tmp_path / "image").read_bytes() == b"k" * 300_000
        assert any(each["id"] == made["id"] for each in glance.image_list(user))
    finally:
        glance.image_delete(user, made["id"])
    with pytest.raises(exceptions.ImageNotFound):
        glance.image_show(user, made["id"])


# --- cinder ------------------------------------------------------------------------------------


def test_volume_attachment(clients, user, server):
    cinder = clients.cinder
    volume = cinder.volume_create(user, 1, "real-test")
    try:
        wait_for(lambda: cinder.volume_show(user, volume["id"])["status"] == "available")
        reserved = cinder.attachment_create(user, volume["id"], server.uuid)
        assert cinder.volume_show(user, volume["id"])["status"] == "reserved"
        assert cinder.attachment_create(user, volume["id"], server.uuid)["id"] == reserved["id"]
        connector = {"host": "fake-host", "ip": "127.0.0.1", "initiator": "iqn.x", "platform": "x86_64",
                     "os_type": "linux", "multipath": False}  # fmt: skip
        updated = cinder.attachment_update(user, reserved["id"], connector, "/dev/vdb")
        assert updated["connection_info"]["driver_volume_type"]
        assert cinder.attachment_delete(user, reserved["id"]) is True
        assert cinder.attachment_delete(user, reserved["id"]) is False
        wait_for(lambda: cinder.volume_show(user, volume["id"])["status"] == "available")
    finally:
        cinder.volume_delete(user, volume["id"])
    with pytest.raises(exceptions.VolumeNotFound):
        cinder.volume_show(user, str(uuid.uuid4()))


def wait_for(holds, seconds=60):
    import time

    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.5)


# --- keystone and credentials ------------------------------------------------------------------


def test_projects(clients, user, admin):
    assert clients.keystone.project_exists(admin, str(user.project_id)) is True
    assert clients.keystone.project_exists(admin, uuid.uuid4().hex) is False


def test_a_forged_token_is_refused(clients, user, server):
    forged = context.RequestContext(
        user_id=user.user_id, project_id=user.project_id, auth_token="forged", service_catalog=user.service_catalog
    )
    with pytest.raises((exceptions.Unauthorized, exceptions.Forbidden, ServiceUnavailable)):
        clients.neutron.validate_networks(forged, None, 1)
