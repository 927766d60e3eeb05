"""What passes and what is final: one table; who waits, and for how long; whose words users read."""

from __future__ import annotations

import pytest
from keystoneauth1 import exceptions as ksa
from tests import fakes
from tests.waiting import of_this_thread

from kilonova.api.errors import seen
from kilonova.base import clock
from kilonova.clients import patience, refusals
from kilonova.clients.http import ServiceError, ServiceUnavailable
from kilonova.clients.keystone.sessions import unanswered
from kilonova.contract import context, exceptions, objects

CTXT = context.RequestContext(user_id="u", project_id="project")


@pytest.fixture(autouse=True)
def a_clock_of_its_own(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waiting takes no time; the list has the seconds that the test waited, without those of other threads."""
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", of_this_thread(slept.append))
    monkeypatch.setattr(clock, "monotonic", lambda: sum(slept))
    return slept


@pytest.mark.parametrize(
    ("status", "passes"),
    [(503, True), (502, True), (504, True), (429, True), (500, False), (400, False), (404, False), (409, False)],
)
@pytest.mark.parametrize("service", ["placement", "neutron", "cinder", "glance", "keystone"])
def test_the_same_of_all_services(service: str, status: int, passes: bool) -> None:
    cloud = fakes.Cloud()
    getattr(cloud, service).fail("GET", ".*", status=status, times=1000)
    http = {
        "placement": cloud.clients.placement._http,
        "neutron": cloud.clients.neutron.rest._http,
        "cinder": cloud.clients.cinder._http,
        "glance": cloud.clients.glance._http,
        "keystone": cloud.clients.keystone._http,
    }[service]
    if status < 500 and not passes:
        assert not http.error(http.call(CTXT, "GET", "/any")).passes
        return
    with pytest.raises(ServiceError) as caught:
        http.call(CTXT, "GET", "/any")
    assert caught.value.passes is passes
    assert seen(caught.value)[0] == 503  # type: ignore[index]


@pytest.mark.parametrize(
    ("error", "passes", "sent"),
    [
        (ksa.ConnectFailure("Connection refused"), True, False),
        (ksa.ConnectFailure("Connection reset by peer"), True, True),
        (ksa.ConnectTimeout("timed out"), True, True),
        (ksa.UnknownConnectionError("broken", None), True, True),
        (ksa.ServiceUnavailable("Keystone is busy"), True, False),
        (ksa.InternalServerError("Keystone's database lost a race"), True, False),
        (ksa.DiscoveryFailure("Could not find versioned identity endpoints"), True, False),
        (ksa.Unauthorized("wrong password"), False, True),
        (ksa.EndpointNotFound("no such region"), False, True),
        (ksa.MissingAuthPlugin("no plugin"), False, True),
    ],
)
def test_why_no_answer_came(error: Exception, passes: bool, sent: bool) -> None:
    found = unanswered("placement", error)
    assert found.passes is passes
    assert not isinstance(found, ServiceUnavailable) or found.sent is sent


def test_a_patient_work_waits_and_another_does_not(a_clock_of_its_own: list[float]) -> None:
    cloud = fakes.Cloud()
    placement = cloud.clients.placement
    cloud.placement.fail("DELETE", "/allocations", status=503, times=60)
    with pytest.raises(ServiceUnavailable):
        placement.allocations_delete(CTXT, "a", force=True)
    assert len(cloud.placement.calls) == 4
    with patience.patient(300.0):
        assert placement.allocations_delete(CTXT, "a", force=True) is False
    assert len(cloud.placement.calls) == 61


def test_patience_ends(a_clock_of_its_own: list[float]) -> None:
    cloud = fakes.Cloud()
    cloud.glance.unreachable("GET", "/v2/images", times=10_000)
    with patience.patient(30.0), pytest.raises(ServiceUnavailable):
        cloud.clients.glance.image_show(CTXT, "i")
    assert 30 <= sum(a_clock_of_its_own) < 60


def test_a_delete_ends_the_waiting_of_a_build(a_clock_of_its_own: list[float]) -> None:
    def overtaken() -> None:
        if sum(a_clock_of_its_own) > 5:
            raise TimeoutError

    cloud = fakes.Cloud()
    cloud.glance.unreachable("GET", "/v2/images", times=10_000)
    with patience.patient(3000.0, overtaken), pytest.raises(TimeoutError):
        cloud.clients.glance.image_show(CTXT, "i")
    assert sum(a_clock_of_its_own) < 20


def test_what_was_not_carried_out_for_sure_is_sent_again_and_else_looked_for() -> None:
    """The answer to a port's creation is lost, then Neutron is away: one port in the end."""
    cloud = fakes.Cloud()
    network = cloud.neutron.network(project="project")
    instance = objects.Instance(
        uuid="11111111-1111-4111-8111-111111111111", project_id="project", hostname="one", availability_zone="nova"
    )
    wanted = objects.NetworkRequestList(objects=[objects.NetworkRequest(network_id=network)])
    cloud.neutron.unreachable("POST", "/v2.0/ports", after=True)
    cloud.neutron.fail("GET", "/v2.0/ports", status=503, times=12)
    with patience.patient(300.0):
        info = cloud.clients.neutron.allocate(CTXT, instance, wanted, None, "h1", first=True)
    assert [vif["id"] for vif in info] == list(cloud.neutron.ports)


def test_a_reservation_whose_answer_was_lost_is_found() -> None:
    cloud = fakes.Cloud()
    volume = cloud.cinder.volume()
    cloud.cinder.fail("POST", "/attachments$", status=504, after=True)
    with patience.patient(300.0):
        made = cloud.clients.cinder.attachment_create(CTXT, volume, "s")
    assert list(cloud.cinder.attachments) == [made["id"]]


@pytest.mark.parametrize(
    ("service", "status", "body", "code", "message"),
    [
        ("neutron", 400, {"NeutronError": {"type": "X", "message": "bad dns_name", "detail": ""}}, 400,
         "The service neutron refused: bad dns_name"),
        ("neutron", 409, {"NeutronError": {"type": "X", "message": "in use", "detail": ""}}, 409,
         "The service neutron refused: in use"),
        ("neutron", 404, {"message": "at 192.0.2.7"}, 500, "The service neutron answered with HTTP 404."),
        ("cinder", 409, "<html>at 192.0.2.7</html>", 500, "The service cinder answered with HTTP 409."),
        ("placement", 400, {"errors": [{"detail": "at 192.0.2.7"}]}, 500,
         "The service placement answered with HTTP 400."),
        ("glance", 409, {"message": "line\r\nbreak"}, 409, "The service glance refused: line break"),
    ],
)  # fmt: skip
def test_whose_words_users_read(service: str, status: int, body: object, code: int, message: str) -> None:
    cloud = fakes.Cloud()
    getattr(cloud, service).fail("GET", ".*", status=status, body=body)
    client = getattr(cloud.clients, service)
    http = client.rest._http if service == "neutron" else client._http
    assert seen(http.error(http.call(CTXT, "GET", "/any"))) == (code, message)


@pytest.mark.parametrize(
    ("service", "about", "status", "kind", "becomes"),
    [
        ("cinder", "volume", 409, None, exceptions.InvalidVolume),
        ("cinder", "volume", 404, None, exceptions.VolumeNotFound),
        ("cinder", "", 404, None, ServiceError),
        ("glance", "image deletion", 409, None, exceptions.ImageDeleteConflict),
        ("neutron", "new port", 409, "OverQuota", exceptions.PortLimitExceeded),
        ("neutron", "port", 409, "Whatever", ServiceError),
        ("placement", "", 403, None, ServiceError),
    ],
)
def test_the_table_of_refusals(service: str, about: str, status: int, kind: str | None, becomes: type) -> None:
    error = ServiceError(service, "because", status, kind)
    found = refusals.of(error, about, volume_id="v")
    assert type(found) is becomes
    assert found is error or found.__cause__ is error
