"""Request contexts: what travels, what does not, and rights."""

from __future__ import annotations

import datetime
import json

import pytest
from oslo_context import context as oslo_context

from kilonova.contract.context import RequestContext


def made(**values: object) -> RequestContext:
    kept = {"user_id": "u", "project_id": "p", "roles": ["member"], "auth_token": "t", "overwrite": False}
    return RequestContext(**{**kept, **values})  # type: ignore[arg-type]


def test_it_travels_whole() -> None:
    sent = made(
        user_domain_id="d",
        global_request_id="req-5f2b1d7e-1f4e-4a3c-8a57-0d3f1f1b2c3d",
        remote_address="192.0.2.1",
        read_deleted="yes",
        timestamp=datetime.datetime(2026, 1, 1, 1, 2, 3, 4),
    )
    got = RequestContext.from_dict(json.loads(json.dumps(sent.to_dict())), overwrite=False)
    assert got.to_dict() == sent.to_dict()
    assert (got.request_id, got.timestamp, got.roles, got.read_deleted) == (
        sent.request_id,
        sent.timestamp,
        ["member"],
        "yes",
    )


def test_only_the_services_that_we_speak_to_stay_in_the_catalog() -> None:
    catalog = [{"type": kind, "endpoints": []} for kind in ("network", "object-store", "volumev3", "compute")]
    assert [entry["type"] for entry in made(service_catalog=catalog).service_catalog] == ["network", "volumev3"]


def test_more_rights_do_not_leak_into_the_request() -> None:
    plain = made()
    admin = plain.elevated(read_deleted="only")
    assert (admin.is_admin, admin.roles, admin.read_deleted) == (True, ["member", "admin"], "only")
    assert (plain.is_admin, plain.roles, plain.read_deleted) == (False, ["member"], "no")
    assert admin.request_id == plain.request_id
    assert plain.to_policy_values()["is_admin"] is False


def test_only_what_a_host_says_names_it() -> None:
    """Nova's services make a context of the keys that they know, as the library does, and pass over ours."""
    plain = made()
    named = plain.sent_by("h1")
    assert named.to_dict() == {**plain.to_dict(), "kilonova_host": "h1"}
    assert "kilonova_host" not in plain.to_dict()
    assert RequestContext.from_dict(named.to_dict(), overwrite=False).sending_host == "h1"
    assert RequestContext.from_dict(plain.to_dict(), overwrite=False).sending_host is None
    theirs = oslo_context.RequestContext.from_dict(named.to_dict(), overwrite=False)
    assert "kilonova_host" not in theirs.to_dict()
    assert theirs.user_id == "u"


def test_unknown_keys_and_zones() -> None:
    got = RequestContext.from_dict({"user_id": "u", "of_a_later_release": 1, "timestamp": "2026-01-01T02:00:00+02:00"})
    assert got.timestamp == datetime.datetime(2026, 1, 1)
    with pytest.raises(ValueError, match="read_deleted"):
        made(read_deleted="maybe")
