"""Names, ancestry, HTTP codes, safety and message fields of the exceptions equal the contract."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.contract import facts as novas

from kilonova.contract import exceptions

NOT_OURS = {"ConvertedException"}  # Nova's WSGI layer has it; ours answers without it


@pytest.fixture(scope="module")
def contract() -> dict[str, Any]:
    data: dict[str, Any] = novas.load("exceptions")
    return data


def test_every_exception_of_the_contract_is_there_with_its_details(contract: dict[str, Any]) -> None:
    wrong = []
    for name, facts in contract["exceptions"].items():
        if name in NOT_OURS:
            continue
        cls = getattr(exceptions, name)
        ancestors = {base.__name__ for base in cls.__mro__}
        if not set(facts["bases"]) <= ancestors:
            wrong.append((name, "bases", facts["bases"]))
        if not issubclass(cls, exceptions.NovaException):
            continue
        fields = set(re.findall(r"%\((\w+)\)", cls.msg_fmt))
        if (cls.code, cls.safe, fields) != (facts["code"], facts["safe"], set(facts.get("fields") or [])):
            wrong.append((name, cls.code, cls.safe, fields))
    assert not wrong


def test_asserted_messages(contract: dict[str, Any]) -> None:
    for asserted in contract["asserted_messages"]:
        assert getattr(exceptions, asserted["exception"]).msg_fmt == asserted["template"]


def test_message_is_made_from_the_arguments() -> None:
    exc = exceptions.InstanceNotFound(instance_id="abc")
    assert exc.format_message() == "Instance abc could not be found."
    assert (exc.code, exc.kwargs["code"], exc.kwargs["instance_id"]) == (404, 404, "abc")
    assert str(exceptions.InstanceNotFound("gone")) == "gone"
    assert exceptions.NovaException("busy", code=409).code == 409


def test_incomplete_arguments_do_not_hide_the_error() -> None:
    assert "InstanceInvalidState: state=active" in str(exceptions.InstanceInvalidState(state="active"))
