"""The peer's API and ours over equal databases: the same questions, the same answers.

Covered are microversions, cells whose database is away, and requests that are wrong: status, headers that matter and
documents. The databases were filled by a control plane of ours; those that the peer filled, and everything at the
newest version, are the affair of test_takeover.py. Needs PEER_PYTHON (a Python with the peer in it).
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.interop import answers_questions as questions
from tests.interop import answers_routes
from tests.interop.answers_cloud import ADMINS, Filled, Setting, fill, pair
from tests.interop.answers_questions import Question, compare
from tests.interop.documents import Allowed
from tests.needs import needs
from tests.unit.db.conftest import templates

PEER = os.environ.get("PEER_PYTHON")
pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(1200),
    needs("peer"),
]
__all__ = ["templates"]

Ask = Callable[[Mapping[str, str]], Iterator[Question]]

_HIDDEN = "locked=true|(power_state|launched_at|terminated_at|progress|config_drive|created_at|description)=x|node=h1"
ALLOWED = (
    Allowed(r"[?&](project_id|tenant_id)=", r".*\.href", "the peer puts a project id from the query into links"),
    Allowed("changes-(since|before)=2|deleted=", r".*\.host_status", "the peer shows what it found for another server"),
    Allowed("sort_key=(host|node)", ".*", "the peer fails: it cannot put servers without a host in an order"),
    Allowed("", r".*\.updated", "of a record that was never updated the peer shows the present"),
    Allowed("/limits|os-quota-sets", r".*(total\w+Used|in_use)", "ours count what was asked for and is in no cell yet"),
    Allowed(_HIDDEN, r"body\.servers.*", "the peer lets a server that is in no cell yet pass filters on what it lacks"),
    Allowed("reservation_id=", r"body\.servers.*", "the peer takes a reservation id for a pattern"),
    Allowed("POST .*/os-(server-groups|aggregates) ", r"body\.\w+\.(id|uuid|created_at)", "chosen by each side"),
    Allowed("no/such/path", ".*", "ours looks at the version before the path"),
    Allowed(r"nobody GET /v2\.1/flavors", r"body.*|headers\.content-type", "the peer's filter answers with text"),
    Allowed("x{1000}", r"body.*|headers.*", "the peer's filter answers with text"),
    Allowed(r'action (null|1|"x")$', ".*", "the peer does not find a body that is no object; for ours it is wrong"),
    Allowed("os-quota-class-sets/%", r".*\.id", "the peer does not decode a path"),
    Allowed(r"GET (/|/v3.*) $", r"headers\.x-.*-request-id", "the peer gives these no request id"),
    Allowed(rf"/v2(\.1)?/({ADMINS}|[0-9a-f]+)/ $", ".*", "the peer repeats the version's document there"),
    Allowed("(HEAD|OPTIONS) /", ".*", "methods that the API does not have"),
    Allowed("%00", "status|body.*|headers.*", "the peer asks its database for it; for ours nothing has such a name"),
    Allowed("changes-(since|before)=2", r"body\.servers", "the peer leaves out what was never updated"),
    Allowed("/servers/detail", r"body\.servers\[\d+\]\.security_groups", "the peer asks Neutron, of lost servers too"),
    Allowed("os-hypervisors.*marker=", "status|body.*", "a marker that is no uuid is wrong, whichever cells are lost"),
    Allowed("os-resetState", "status|body.*", "ours asks the policy before the lost cell"),
)


OF_ROUTES = (
    Allowed("sort_key=.*sort_key=", r"body\.servers_links.*", "the peer's link forgets all sort keys but the last"),
    Allowed("POST /v2.1/servers ", r"body\.server\.(id|links|adminPass).*", "chosen by each side"),
    Allowed("POST /v2.1/servers ", r"body\.reservation_id|headers\.location", "chosen by each side"),
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, templates: Path) -> Filled:
    return fill(tmp_path_factory.mktemp("answers") / "filled", templates)


LOST = ("cell0", "cell2")
FAILING = {"api": {"list_records_by_skipping_down_cells": False}}
OWN = {"api": {"instance_list_per_project_cells": True}}


@pytest.mark.parametrize(
    ("setting", "asked", "least"),
    [
        pytest.param(Setting(), questions.at_many_versions, 800, id="versions"),
        pytest.param(Setting(), questions.written_at_many_versions, 800, id="writing-at-versions"),
        pytest.param(Setting(), questions.wrong, 2000, id="wrong"),
        pytest.param(Setting(("cell2",)), questions.of_lost_cells, 300, id="a-lost-cell"),
        pytest.param(Setting(("cell2",)), questions.lists_with_lost_cells, 150, id="lists-with-a-lost-cell"),
        pytest.param(Setting(LOST), questions.lists_with_lost_cells, 150, id="lists-with-lost-cells"),
        pytest.param(Setting(LOST, FAILING), questions.lists_with_lost_cells, 150, id="lists-that-lost-cells-fail"),
        pytest.param(Setting(LOST, OWN), questions.lists_with_lost_cells, 150, id="lists-of-projects-with-lost-cells"),
        pytest.param(Setting(("cell2",)), questions.to_lost_servers, 200, id="writing-to-a-lost-cell"),
    ],
)
def test_the_same_answers(filled: Filled, setting: Setting, asked: Ask, least: int, tmp_path: Path) -> None:
    names = filled.names
    told_apart = (
        Allowed(re.escape(names["asked"]), ".*", "what is in no cell yet the peer knows only in part"),
        Allowed(f"joe .*{names['anns h2']}", "status|body.*", "in a lost cell the peer tells strangers what there is"),
    )
    with pair(str(PEER), filled, setting, tmp_path / "pair") as both:
        found = compare(both, asked(names), (*ALLOWED, *told_apart))
    assert not found.differences, found.told()
    assert found.asked >= least


def test_every_route_stands_in_the_table() -> None:
    assert answers_routes.missing() == set()


def test_every_route_by_member_and_administrator_at_each_microversion(filled: Filled, tmp_path: Path) -> None:
    folder = tmp_path / "pair"
    databases = answers_routes.Databases((folder / "theirs", folder / "ours"))
    with pair(str(PEER), filled, Setting(), folder) as both:
        asked = itertools.chain(answers_routes.every_route(filled.names, databases), answers_routes.gone())
        found = compare(both, asked, (*ALLOWED, *OF_ROUTES), answers_routes.Valid())
    print(f"{found.asked} answers compared")
    assert not found.differences, found.told()
    assert not found.not_built
    assert found.asked > 2500
