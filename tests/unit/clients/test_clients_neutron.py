"""Port allocation against a Neutron with states, quotas and failures."""

from __future__ import annotations

import concurrent.futures
import threading

import pytest
from tests import fakes

from kilonova.clients.http import ServiceError, ServiceUnavailable
from kilonova.clients.neutron import networking
from kilonova.clients.neutron.rest import NeutronError
from kilonova.contract import context, exceptions, objects

PROJECT = "project"


@pytest.fixture
def cloud() -> fakes.Cloud:
    return fakes.Cloud()


@pytest.fixture
def neutron(cloud):
    return cloud.clients.neutron


def ctxt(**more):
    return context.RequestContext(user_id="user", project_id=PROJECT, auth_token="t", **more)


def server(uuid="11111111-1111-4111-8111-111111111111"):
    return objects.Instance(uuid=uuid, project_id=PROJECT, hostname="web", availability_zone="nova")


def wants(**fields):
    return objects.NetworkRequest(**fields)


def allocate(neutron, *requested, host="h1", groups=None, **more):
    return neutron.allocate(ctxt(), server(), list(requested) or None, groups, host, **more)


# --- the plain build ---------------------------------------------------------------------------


def test_new_port_is_the_servers_and_bound_to_the_host(cloud, neutron):
    net = cloud.neutron.network()
    [vif] = allocate(neutron, wants(network_id=net))
    [port] = cloud.neutron.ports.values()
    assert port["device_id"] == server().uuid
    assert port["device_owner"] == "compute:nova"
    assert port["binding:host_id"] == "h1"
    assert port["dns_name"] == "web"
    assert port["tenant_id"] == PROJECT
    assert vif["id"] == port["id"]
    assert vif["type"] == "ovs"
    assert vif["ovs_interfaceid"] == port["id"]
    assert vif["preserve_on_delete"] is False
    assert vif["network"]["bridge"] == "br-int"
    assert vif["network"]["meta"]["mtu"] == 1442
    assert vif["network"]["meta"]["tunneled"] is True
    assert vif["network"]["subnets"][0]["ips"][0]["address"] == port["fixed_ips"][0]["ip_address"]


def writes(cloud):
    return [(each.method, each.admin) for each in cloud.neutron.requests if each.method != "GET"]


def test_service_makes_and_binds_the_port_at_once(cloud, neutron):
    net = cloud.neutron.network()
    allocate(neutron, wants(network_id=net))
    assert writes(cloud) == [("POST", True)]


def test_user_makes_the_port_where_the_deployment_says_so(cloud, neutron):
    net = cloud.neutron.network()
    neutron = networking.Neutron(neutron.rest, bound_at_once=False)
    [vif] = allocate(neutron, wants(network_id=net))
    assert writes(cloud) == [("POST", False), ("PUT", True)]
    assert vif["type"] == "ovs"


def test_user_makes_the_port_whose_address_is_chosen(cloud, neutron):
    """Who may choose addresses in a network is said by Neutron's policy."""
    net = cloud.neutron.network()
    allocate(neutron, wants(network_id=net, address="10.0.0.77"))
    assert writes(cloud) == [("POST", False), ("PUT", True)]


def test_network_of_another_project_is_not_found_by_the_services_eyes(cloud, neutron):
    hidden = cloud.neutron.network(project="other")
    with pytest.raises(exceptions.NetworkNotFound):
        allocate(neutron, wants(network_id=hidden))
    with pytest.raises(exceptions.NetworkNotFound):
        neutron.validate_networks(ctxt(), [wants(network_id=hidden)], 1)
    assert cloud.neutron.ports == {}


# --- what builds share -------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is moved: a list with the time."""
    time = [1000.0]
    monkeypatch.setattr("kilonova.base.clock.monotonic", lambda: time[0])
    return time


def remembering(neutron):
    return networking.Neutron(neutron.rest, remember=5.0)


def test_builds_in_a_row_ask_only_for_what_is_their_own(cloud, neutron, clock):
    net, neutron = cloud.neutron.network(), remembering(neutron)
    counts = []
    for n in range(3):
        clock[0] += 6.0 * (n == 2)
        cloud.neutron.calls.clear()
        neutron.resource_requests(ctxt(), [wants(network_id=net)])
        neutron.validate_networks(ctxt(), [wants(network_id=net)], 1)
        allocate(neutron, wants(network_id=net), first=True)
        counts.append(len(cloud.neutron.calls))
    # extensions, network, quota, port, subnets, DHCP ports; then the port alone; later all but the extensions.
    assert counts == [6, 1, 5]


@pytest.mark.parametrize("known", [False, True])
def test_nobody_waits_for_extensions_that_another_one_asks_for(cloud, neutron, clock, monkeypatch, known):
    if known:
        neutron.rest.extensions(ctxt())
        clock[0] += 601.0
    asked, away, send = threading.Event(), threading.Event(), type(cloud.neutron).send

    def slow(service, request):
        if not asked.is_set():
            asked.set()
            assert away.wait(10)
        return send(service, request)

    monkeypatch.setattr(type(cloud.neutron), "send", slow)
    first = threading.Thread(target=neutron.rest.extensions, args=(ctxt(),))
    first.start()
    assert asked.wait(10)
    second = concurrent.futures.ThreadPoolExecutor(1).submit(neutron.rest.extensions, ctxt())
    assert second.result(10)
    away.set()
    first.join(10)


def test_a_token_that_neutron_does_not_take_is_the_users_matter_our_password_is_not(cloud, neutron):
    net = cloud.neutron.network()
    words = {"error": {"message": "The request you have made requires authentication."}}
    cloud.neutron.fail("GET", "/v2.0/networks", status=401, times=3, body=words)
    with pytest.raises(exceptions.Unauthorized, match=r"neutron does not accept this token.*requires authentication"):
        neutron.rest.list(ctxt(), "networks", id=[net])
    for caller, admin in ((ctxt(), True), (context.admin(), False)):
        with pytest.raises(ServiceError) as caught:
            neutron.rest.list(caller, "networks", id=[net], admin=admin)
        assert (caught.value.status, caught.value.words) == (401, None)
    port = cloud.neutron.port(net, project=PROJECT)
    cloud.neutron.fail("PUT", "/v2.0/ports/", status=401, body=words)
    with pytest.raises(ServiceError, match="401"):
        allocate(neutron, wants(port_id=port))


@pytest.mark.parametrize("status", [401, 403, 409, 500])
def test_a_port_that_stays_keeps_no_other_one(cloud, neutron, status):
    net = cloud.neutron.network()
    allocate(neutron, wants(network_id=net), wants(network_id=net))
    first = cloud.neutron.ports_of(server().uuid)[0]["id"]
    cloud.neutron.fail("DELETE", f"/v2.0/ports/{first}", status=status, times=99)
    with pytest.raises((ServiceError, exceptions.Forbidden)):
        neutron.deallocate(ctxt(), server())
    assert [port["id"] for port in cloud.neutron.ports_of(server().uuid)] == [first]


def test_a_network_without_subnets_is_looked_at_again(cloud, neutron, clock):
    net, neutron = cloud.neutron.network(cidr=None), remembering(neutron)
    with pytest.raises(exceptions.NetworkRequiresSubnet):
        neutron.validate_networks(ctxt(), [wants(network_id=net)], 1)
    cloud.neutron.subnet(net, "10.0.0.0/24")
    assert neutron.validate_networks(ctxt(), [wants(network_id=net)], 1) == 1


def test_a_limit_on_ports_is_looked_at_again(cloud, neutron, clock):
    net, neutron = cloud.neutron.network(), remembering(neutron)
    cloud.neutron.quotas[PROJECT] = {"port": 0}
    assert neutron.validate_networks(ctxt(), [wants(network_id=net)], 1) == 0
    cloud.neutron.quotas[PROJECT] = {"port": 1}
    assert neutron.validate_networks(ctxt(), [wants(network_id=net)], 1) == 1


def test_a_refresh_sees_what_changed_this_moment(cloud, neutron, clock):
    net, neutron = cloud.neutron.network(), remembering(neutron)
    info = allocate(neutron, wants(network_id=net))
    cloud.neutron.networks[net]["mtu"] = 900
    [vif] = neutron.network_info(ctxt(), server(), cached=info)
    assert vif["network"]["meta"]["mtu"] == 900


def test_a_first_try_looks_for_no_leftovers(cloud, neutron):
    net = cloud.neutron.network()
    allocate(neutron, wants(network_id=net), first=True)
    asked = [dict(each.params) for each in cloud.neutron.requests if (each.method, each.path) == ("GET", "/v2.0/ports")]
    assert not any("device_id" in each for each in asked)


def test_interfaces_come_in_the_requested_order(cloud, neutron):
    nets = [cloud.neutron.network(name, cidr=f"10.0.{n}.0/24") for n, name in enumerate("abc")]
    vifs = allocate(neutron, *(wants(network_id=net) for net in reversed(nets)))
    assert [vif["network"]["label"] for vif in vifs] == ["c", "b", "a"]


def test_describing_many_interfaces_takes_no_more_calls_than_one(cloud, neutron):
    net = cloud.neutron.network()
    cloud.neutron.page = 1000
    calls = []
    for count in (1, 5):
        for _ in range(count):
            cloud.neutron.port(net, device_id=server().uuid)
        cloud.neutron.calls.clear()
        neutron.network_info(ctxt(), server())
        calls.append(len(cloud.neutron.calls))
    assert calls[0] == 6  # extensions are asked for once
    assert calls[1] == 5


def test_the_only_network_is_taken_when_none_is_named(cloud, neutron):
    cloud.neutron.network("mine")
    [vif] = allocate(neutron)
    assert vif["network"]["label"] == "mine"


def test_no_network_at_all_is_fine_when_none_is_named(cloud, neutron):
    assert allocate(neutron) == []


def test_none_gives_none(cloud, neutron):
    cloud.neutron.network()
    assert allocate(neutron, wants(network_id="none")) == []
    assert cloud.neutron.ports == {}


def test_several_networks_are_ambiguous(cloud, neutron):
    cloud.neutron.network("a")
    cloud.neutron.network("b", cidr="10.1.0.0/24")
    with pytest.raises(exceptions.NetworkAmbiguous):
        allocate(neutron)


def test_auto_makes_a_network(cloud, neutron):
    made = cloud.neutron.network("auto", shared=False, project="someone")
    cloud.neutron.networks[made]["tenant_id"] = PROJECT
    hidden = cloud.neutron.networks.pop(made)
    cloud.neutron.auto_network = made
    real = cloud.neutron.auto_allocated_topology

    def topology(request, project):
        cloud.neutron.networks[made] = hidden
        return real(request, project)

    cloud.neutron._routes = [
        (method, pattern, topology if handler == real else handler)
        for method, pattern, handler in cloud.neutron._routes
    ]
    [vif] = allocate(neutron, wants(network_id="auto"))
    assert vif["network"]["id"] == made


def test_fixed_address_and_tag(cloud, neutron):
    net = cloud.neutron.network()
    requested = [wants(network_id=net, address="10.0.0.77", tag="nic0")]
    vifs = allocate(neutron, *requested)
    [port] = cloud.neutron.ports.values()
    assert port["fixed_ips"][0]["ip_address"] == "10.0.0.77"
    assert networking.tags(vifs, requested) == {port["id"]: "nic0"}


def test_floating_addresses_hang_on_their_fixed_one(cloud, neutron):
    net = cloud.neutron.network()
    port = cloud.neutron.port(net, device_id=server().uuid)
    fixed = cloud.neutron.ports[port]["fixed_ips"][0]["ip_address"]
    cloud.neutron.floatingips["f"] = {
        "id": "f", "port_id": port, "fixed_ip_address": fixed, "floating_ip_address": "192.0.2.9", "tenant_id": PROJECT,
    }  # fmt: skip
    [vif] = neutron.network_info(ctxt(), server())
    ip = vif["network"]["subnets"][0]["ips"][0]
    assert [each["address"] for each in ip["floating_ips"]] == ["192.0.2.9"]


# --- existing ports ----------------------------------------------------------------------------


def test_existing_port_is_bound_and_outlives_the_server(cloud, neutron):
    net = cloud.neutron.network()
    port = cloud.neutron.port(net, **{"binding:profile": {"tag": "keep"}})
    info = allocate(neutron, wants(port_id=port))
    assert info[0]["preserve_on_delete"] is True
    assert cloud.neutron.ports[port]["device_id"] == server().uuid
    neutron.deallocate(ctxt(), server(), cached=info)
    assert cloud.neutron.ports[port]["device_id"] == ""
    assert cloud.neutron.ports[port]["binding:host_id"] == ""
    assert cloud.neutron.ports[port]["binding:profile"] == {"tag": "keep"}


@pytest.mark.parametrize(
    ("port", "raised"),
    [
        ({"device_id": "someone-else"}, exceptions.PortInUse),
        ({"project": "other"}, exceptions.PortNotUsable),
        ({"dns_name": "other-name"}, exceptions.PortNotUsableDNS),
        ({"binding:vif_type": "binding_failed"}, exceptions.PortBindingFailed),
    ],
)
def test_unusable_ports_are_refused(cloud, neutron, port, raised):
    net = cloud.neutron.network(shared=True)
    port_id = cloud.neutron.port(net, **port)
    before = dict(cloud.neutron.ports[port_id])
    with pytest.raises(raised):
        allocate(neutron, wants(port_id=port_id))
    assert cloud.neutron.ports[port_id] == before


def test_unknown_port(neutron):
    with pytest.raises(exceptions.PortNotFound):
        allocate(neutron, wants(port_id="22222222-2222-4222-8222-222222222222"))


def test_a_port_taken_meanwhile_is_in_use(cloud, neutron):
    net = cloud.neutron.network()
    port = cloud.neutron.port(net)
    real = cloud.neutron.list_networks

    def taken_while_we_look(request):
        cloud.neutron.ports[port]["device_id"] = "another-server"
        cloud.neutron.ports[port]["revision_number"] += 1
        return real(request)

    cloud.neutron._routes = [
        (method, pattern, taken_while_we_look if handler == real else handler)
        for method, pattern, handler in cloud.neutron._routes
    ]
    with pytest.raises(exceptions.PortInUse):
        allocate(neutron, wants(port_id=port))
    assert cloud.neutron.ports[port]["device_id"] == "another-server"


# --- failures leave nothing --------------------------------------------------------------------


def test_failure_on_the_second_port_removes_the_first(cloud, neutron):
    nets = [cloud.neutron.network("a"), cloud.neutron.network("b", cidr="10.1.0.0/24")]
    cloud.neutron.quotas[PROJECT] = {"port": 1}
    with pytest.raises(exceptions.PortLimitExceeded):
        allocate(neutron, *(wants(network_id=net) for net in nets))
    assert cloud.neutron.ports == {}


def test_failed_binding_deletes_new_and_frees_existing_ports(cloud, neutron):
    net = cloud.neutron.network()
    port = cloud.neutron.port(net)
    cloud.neutron.unbindable.add("h1")
    with pytest.raises(exceptions.PortBindingFailed):
        allocate(neutron, wants(port_id=port), wants(network_id=net))
    assert list(cloud.neutron.ports) == [port]
    assert cloud.neutron.ports[port]["device_id"] == ""


def test_failure_to_describe_undoes_too(cloud, neutron):
    net = cloud.neutron.network()
    cloud.neutron.fail("GET", "/v2.0/subnets", status=500, times=9)
    with pytest.raises(Exception, match="neutron"):
        allocate(neutron, wants(network_id=net))
    assert cloud.neutron.ports == {}


def test_repeat_after_a_lost_answer_makes_no_second_port(cloud, neutron):
    net = cloud.neutron.network()
    cloud.neutron.unreachable("POST", "/v2.0/ports", after=True)
    with pytest.raises(ServiceUnavailable):
        allocate(neutron, wants(network_id=net))
    assert len(cloud.neutron.ports) == 1
    [vif] = allocate(neutron, wants(network_id=net))
    assert [vif["id"]] == list(cloud.neutron.ports)
    assert vif["preserve_on_delete"] is False


def test_attaching_does_not_take_an_interface_in_use(cloud, neutron):
    net = cloud.neutron.network()
    [first] = allocate(neutron, wants(network_id=net))
    [second] = allocate(neutron, wants(network_id=net), attached=[first["id"]])
    assert first["id"] != second["id"]
    assert len(cloud.neutron.ports) == 2


def test_repeats_idempotent_calls_through_a_hiccup(cloud, neutron):
    net = cloud.neutron.network()
    cloud.neutron.fail("PUT", "/v2.0/ports", status=503, times=2)
    assert len(allocate(neutron, wants(network_id=net))) == 1


@pytest.mark.parametrize(
    ("kind", "status", "raised"),
    [
        ("IpAddressGenerationFailure", 409, exceptions.NoMoreFixedIps),
        ("InvalidIpForNetwork", 400, exceptions.InvalidInput),
        ("IpAddressInUse", 409, exceptions.FixedIpAlreadyInUse),
        ("OverQuota", 409, exceptions.PortLimitExceeded),
        ("MacAddressGenerationFailure", 503, ServiceUnavailable),
        ("SomethingElse", 409, NeutronError),
    ],
)
def test_refusals_in_the_words_users_know(cloud, neutron, kind, status, raised):
    net = cloud.neutron.network()
    body = {"NeutronError": {"type": kind, "message": "no", "detail": ""}}
    cloud.neutron.fail("POST", "/v2.0/ports", status=status, body=body, times=9)
    with pytest.raises(raised):
        allocate(neutron, wants(network_id=net))


# --- security groups ---------------------------------------------------------------------------


def test_groups_by_name_and_id(cloud, neutron):
    net = cloud.neutron.network()
    by_name, by_id = cloud.neutron.security_group("web"), cloud.neutron.security_group("db")
    [vif] = allocate(neutron, wants(network_id=net), groups=["web", by_id])
    assert cloud.neutron.ports[vif["id"]]["security_groups"] == [by_name, by_id]
    found = neutron.security_groups_for(ctxt(), [vif["id"]])
    assert {each["name"] for each in found[vif["id"]]} == {"web", "db"}


def test_unknown_and_ambiguous_groups(cloud, neutron):
    net = cloud.neutron.network()
    with pytest.raises(exceptions.SecurityGroupNotFound):
        allocate(neutron, wants(network_id=net), groups=["nope"])
    cloud.neutron.security_group("twin")
    cloud.neutron.security_group("twin")
    with pytest.raises(exceptions.NoUniqueMatch):
        allocate(neutron, wants(network_id=net), groups=["twin"])
    assert cloud.neutron.ports == {}


def test_shared_group_of_another_project(cloud, neutron):
    net = cloud.neutron.network()
    shared = cloud.neutron.security_group("theirs", project="other", shared=True)
    [vif] = allocate(neutron, wants(network_id=net), groups=["theirs"])
    assert cloud.neutron.ports[vif["id"]]["security_groups"] == [shared]


def test_groups_need_port_security(cloud, neutron):
    net = cloud.neutron.network(port_security_enabled=False)
    cloud.neutron.security_group("web")
    with pytest.raises(exceptions.SecurityGroupCannotBeApplied):
        allocate(neutron, wants(network_id=net), groups=["web"])
    assert len(allocate(neutron, wants(network_id=net))) == 1


def test_external_network_is_for_admins(cloud, neutron):
    net = cloud.neutron.network("ext", project="other", **{"router:external": True})
    with pytest.raises(exceptions.ExternalNetworkAttachForbidden):
        allocate(neutron, wants(network_id=net))
    assert len(allocate(neutron, wants(network_id=net), may_attach_external=True)) == 1


# --- refresh and deallocation ------------------------------------------------------------------


def test_refresh_keeps_order_adds_new_and_drops_gone(cloud, neutron):
    net = cloud.neutron.network()
    info = allocate(neutron, wants(network_id=net), wants(network_id=net))
    third = cloud.neutron.port(net, device_id=server().uuid)
    cached = list(reversed(info))
    del cloud.neutron.ports[info[0]["id"]]
    fresh = neutron.network_info(ctxt(), server(), cached=cached)
    assert [vif["id"] for vif in fresh] == [info[1]["id"], third]


def test_refresh_of_one_port_leaves_the_others_alone(cloud, neutron):
    net = cloud.neutron.network()
    info = allocate(neutron, wants(network_id=net), wants(network_id=net))
    for port in cloud.neutron.ports.values():
        port["status"] = "ACTIVE"
    fresh = neutron.network_info(ctxt(), server(), cached=info, port_id=info[1]["id"])
    assert [vif["active"] for vif in fresh] == [False, True]
    del cloud.neutron.ports[info[0]["id"]]
    kept = neutron.network_info(ctxt(), server(), cached=info, port_id=info[0]["id"])
    assert [vif["id"] for vif in kept] == [vif["id"] for vif in info]


def test_another_projects_port_cannot_slip_in(cloud, neutron):
    net = cloud.neutron.network()
    cloud.neutron.port(net, project="other", device_id=server().uuid)
    assert neutron.network_info(ctxt(), server()) == []
    neutron.deallocate(ctxt(), server())
    assert len(cloud.neutron.ports) == 1


def test_deallocate_tries_all_and_tells(cloud, neutron):
    net = cloud.neutron.network()
    allocate(neutron, wants(network_id=net), wants(network_id=net))
    cloud.neutron.fail("DELETE", "/v2.0/ports", status=409, body={"NeutronError": {"type": "X", "message": "busy"}})
    with pytest.raises(NeutronError, match="busy"):
        neutron.deallocate(ctxt(), server())
    assert len(cloud.neutron.ports) == 1
    neutron.deallocate(ctxt(), server())
    neutron.deallocate(ctxt(), server())
    assert cloud.neutron.ports == {}


def test_binding_moves_to_another_host(cloud, neutron):
    net = cloud.neutron.network()
    allocate(neutron, wants(network_id=net))
    neutron.setup_binding(ctxt(), server(), "h2")
    assert [port["binding:host_id"] for port in cloud.neutron.ports.values()] == ["h2"]


# --- validation at the API ---------------------------------------------------------------------


def test_quota_limits_the_number_of_servers(cloud, neutron):
    net = cloud.neutron.network()
    cloud.neutron.quotas[PROJECT] = {"port": 5}
    cloud.neutron.port(net)
    assert neutron.validate_networks(ctxt(), [wants(network_id=net), wants(network_id=net)], 4) == 2
    assert neutron.validate_networks(ctxt(), [wants(network_id="none")], 4) == 4


def test_over_quota_is_refused(cloud, neutron):
    net = cloud.neutron.network()
    cloud.neutron.quotas[PROJECT] = {"port": 0}
    cloud.neutron._new_port({"network_id": net, "tenant_id": PROJECT})
    with pytest.raises(exceptions.PortLimitExceeded):
        neutron.validate_networks(ctxt(), [wants(network_id=net)], 1)


def test_validation_sees_what_is_wrong(cloud, neutron):
    net = cloud.neutron.network()
    bare = cloud.neutron.network("bare", cidr=None)
    used = cloud.neutron.port(net, device_id="x")
    bare_port = cloud.neutron.port(bare)
    taken = cloud.neutron.ports[used]["fixed_ips"][0]["ip_address"]
    unknown = "33333333-3333-4333-8333-333333333333"
    for request, raised in [
        (wants(network_id=unknown), exceptions.NetworkNotFound),
        (wants(network_id=bare), exceptions.NetworkRequiresSubnet),
        (wants(port_id=unknown), exceptions.PortNotFound),
        (wants(port_id=used), exceptions.PortInUse),
        (wants(port_id=bare_port), exceptions.PortRequiresFixedIP),
        (wants(network_id=net, address=taken), exceptions.FixedIpAlreadyInUse),
        (wants(network_id="auto"), exceptions.NetworkAmbiguous),
    ]:
        with pytest.raises(raised):
            neutron.validate_networks(ctxt(), [request], 1)


def test_auto_needs_a_deployment_that_can(cloud, neutron):
    with pytest.raises(exceptions.UnableToAutoAllocateNetwork):
        neutron.validate_networks(ctxt(), [wants(network_id="auto")], 1)
    cloud.neutron.auto_network = "some"
    assert neutron.validate_networks(ctxt(), [wants(network_id="auto")], 1) == 1


# --- what the scheduler must know --------------------------------------------------------------


def test_resource_requests_of_ports(cloud, neutron):
    net = cloud.neutron.network(**{"provider:network_type": "vlan", "provider:physical_network": "physnet0"})
    groups = [{"id": "g1", "required": ["CUSTOM_PHYSNET"], "resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}}]
    qos = cloud.neutron.port(net, resource_request={"request_groups": groups, "same_subtree": ["g1"]})
    sriov = cloud.neutron.port(net, **{"binding:vnic_type": "direct"})
    requested = [wants(port_id=qos), wants(port_id=sriov), wants(network_id=net)]
    found = neutron.resource_requests(ctxt(), requested)
    assert found.metadata.physnets == {"physnet0"}
    assert found.metadata.tunneled is False
    assert [(g.requester_id, g.resources) for g in found.groups] == [("g1", {"NET_BW_EGR_KILOBIT_PER_SEC": 1000})]
    assert found.same_subtree == [["g1"]]
    assert found.pci[0].request_id == requested[1].pci_request_id
    assert neutron.resource_requests(ctxt(), [wants(network_id="none")]) is None


def test_claimed_provider_is_written_to_the_port(cloud, neutron):
    net = cloud.neutron.network()
    groups = [{"id": "g1", "required": [], "resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}}]
    port = cloud.neutron.port(net, resource_request={"request_groups": groups})
    info = allocate(neutron, wants(port_id=port), mapping={"g1": ["rp1"]})
    assert cloud.neutron.ports[port]["binding:profile"] == {"allocation": {"g1": "rp1"}}
    held = neutron.release_port(ctxt(), server(), port, info)
    assert held == {"rp1": {"resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}}}
    assert cloud.neutron.ports[port]["binding:profile"] == {}
