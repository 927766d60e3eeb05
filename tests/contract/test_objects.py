"""Every wire object equals the contract: fields, remote methods (by fingerprint) and sending to older receivers."""

from __future__ import annotations

import collections
import hashlib
from typing import Any

import pytest
from oslo_versionedobjects import fields as ovo_fields
from oslo_versionedobjects import fixture
from tests.contract import facts as novas

from kilonova.contract import exceptions, objects
from kilonova.contract.objects import base, signatures, types

ArgSpec = collections.namedtuple("ArgSpec", "args varargs keywords defaults")


CONTRACT: dict[str, Any] = novas.load("objects")


def spec(text: str, first: list[str]) -> ArgSpec:
    arguments = signatures.arguments(text)
    plain = [a for a in arguments if not a.kind]
    stars = {a.kind: a.name for a in arguments if a.kind}
    defaults = tuple(a.default for a in plain if a.default is not ...)
    return ArgSpec(first + [a.name for a in plain], stars.get("*"), stars.get("**"), defaults or None)


def fingerprint(cls: type[base.WireObject], *more: Any) -> str:
    """As oslo.versionedobjects' ObjectVersionChecker computes it, with declared signatures in place of functions."""
    methods = [(name, spec(text, ["self"])) for name, text in cls.METHODS.items()]
    methods += [(name, spec(text, ["cls", "context"])) for name, text in cls.CLASS_METHODS.items()]
    data: tuple[Any, ...] = (sorted(cls.fields.items()), sorted(methods))
    if hasattr(cls, "child_versions"):
        data += (fixture.OsloOrderedDict(sorted(cls.child_versions.items())),)
    data += more
    return f"{cls.VERSION}-{hashlib.md5(repr(data).encode()).hexdigest()}"


def test_all_objects_and_no_others_are_declared() -> None:
    assert set(objects.names()) == set(CONTRACT["objects"])
    assert CONTRACT["service_version"] == objects.SERVICE_VERSION


@pytest.mark.parametrize("name", sorted(CONTRACT["objects"]))
def test_fingerprint(name: str) -> None:
    cls, facts = objects.load(name), CONTRACT["objects"][name]
    for field, declared in facts["fields"].items():
        assert repr(cls.fields[field]) == declared["repr"], field
        assert cls.fields[field].read_only == bool(declared.get("read_only")), field
    assert fingerprint(cls) == facts["fingerprint"]


@pytest.mark.parametrize("name", sorted(CONTRACT["objects"]))
def test_children_and_set_on_init(name: str) -> None:
    facts = CONTRACT["objects"][name]
    assert objects.manifest(name) == facts.get("manifest", {}) | {name: facts["version"]}
    if facts.get("extra_fields"):
        assert set(objects.load(name).obj_extra_fields) == set(facts["extra_fields"])
    obj = objects.load(name)()
    assert {f for f in obj.fields if obj.obj_attr_is_set(f)} == set(facts.get("set_on_init") or [])


def filled(name: str) -> Any:
    """The object with plain values set in as many fields as have an easy one."""
    obj = objects.load(name)()
    for field, kind in obj.fields.items():
        sample = _sample(kind)
        if sample is not None:
            setattr(obj, field, sample)
    return obj


SAMPLES: dict[type, Any] = {
    ovo_fields.String: "text",
    ovo_fields.SensitiveString: "text",
    ovo_fields.UUID: "5f2b1d7e-1f4e-4a3c-8a57-0d3f1f1b2c3d",
    ovo_fields.Integer: 1,
    ovo_fields.Float: 1.5,
    ovo_fields.Boolean: True,
    ovo_fields.FlexibleBoolean: True,
    ovo_fields.Dict: {},
    ovo_fields.List: [],
    ovo_fields.Set: set(),
}


def _sample(field: Any) -> Any:
    kind = field._type
    if isinstance(kind, types.ChoiceType):
        return kind.ALL[0]
    return SAMPLES.get(type(kind))


OWN_RULES = {"LibvirtLiveMigrateData", "ShareMapping"}
"""Refuse whole targets; have tests of their own."""


@pytest.mark.parametrize("name", sorted(set(CONTRACT["objects"]) - OWN_RULES))
def test_fields_that_older_receivers_do_not_know_are_left_out(name: str) -> None:
    facts = CONTRACT["objects"][name]
    removed = (facts.get("backlevel") or {}).get("removed_when_target_at_most") or {}
    obj = filled(name)
    for limits in obj.LIMITS:
        delattr(obj, "_obj_" + limits) if hasattr(obj, "_obj_" + limits) else None
    full = set(obj.obj_to_primitive()["nova_object.data"])
    for target in facts["versions"]:
        data = obj.obj_to_primitive(target_version=target, version_manifest={name: target})["nova_object.data"]
        gone = {f for f, up_to in removed.items() if base.version_tuple(target) <= base.version_tuple(up_to)}
        assert full - set(data) == gone & full, target


def test_values_that_older_receivers_do_not_know_are_refused_or_rewritten() -> None:
    seen = 0
    for name, facts in CONTRACT["objects"].items():
        for field, limits in ((facts.get("backlevel") or {}).get("enum_limits") or {}).items():
            for value, limit in limits.items():
                if limit.get("raises") == "KeyError" or name in OWN_RULES:
                    continue
                seen += 1
                obj = objects.load(name)(**{field: value})
                manifest = {name: limit["up_to"]}
                if "rewritten" in limit:
                    primitive = obj.obj_to_primitive(target_version=limit["up_to"], version_manifest=manifest)
                    assert primitive["nova_object.data"][field] == limit["rewritten"]
                else:
                    with pytest.raises(exceptions.ObjectActionError):
                        obj.obj_to_primitive(target_version=limit["up_to"], version_manifest=manifest)
    assert seen >= 14
