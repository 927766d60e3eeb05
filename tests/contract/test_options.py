"""Every option we declare is the contract's: same group, name, type, default, bounds, choices and old names.

Options of our own are in the group `kilonova`.
"""

import json
import pathlib

import pytest

from kilonova import conf as configuration

CONTRACT = pathlib.Path(__file__).parents[3] / "shared" / "contract" / "config.json"
if not CONTRACT.exists():
    pytest.skip("the contract data are not here", allow_module_level=True)
FACTS = {(each["group"], each["name"]): each for each in json.loads(CONTRACT.read_text())["options"]}

ELSEWHERE = {
    # Of older releases, whose executables had a server and an authentication of their own as ours have.
    ("api", "auth_strategy"),
    ("DEFAULT", "metadata_listen"),
    ("DEFAULT", "metadata_listen_port"),
    ("DEFAULT", "osapi_compute_listen"),
    ("DEFAULT", "osapi_compute_listen_port"),
    # Of libraries whose part we play.
    ("oslo_middleware", "enable_proxy_headers_parsing"),
    ("oslo_middleware", "max_request_body_size"),
}

DECLARED = [
    pytest.param(module.GROUP or "DEFAULT", option, id=f"{module.GROUP or 'DEFAULT'}.{option.name}")
    for module in configuration.modules()
    if module.GROUP != "kilonova"
    for option in module.OPTIONS
    if (module.GROUP or "DEFAULT", option.name) not in ELSEWHERE
]


def choices(option):
    found = getattr(option.type, "choices", None)
    return {str(choice) for choice in found} if found else set()


def old_names(option):
    return {(each.group, each.name) for each in option.deprecated_opts}


@pytest.mark.parametrize(("group", "option"), DECLARED)
def test_option(group, option):
    assert (group, option.name) in FACTS, "not an option of the contract"
    facts = FACTS[group, option.name]
    assert type(option.type).__name__ == facts["type"]
    if not facts.get("default_computed"):
        assert option.default == facts["default"] or not (option.default or facts["default"])
    assert getattr(option.type, "min", None) == facts.get("min")
    assert getattr(option.type, "max", None) == facts.get("max")
    assert choices(option) == {str(choice) for choice in facts.get("choices") or ()}
    assert bool(option.secret) == bool(facts.get("secret"))
    assert bool(option.mutable) <= bool(facts.get("mutable"))
    wanted = {(each["group"], each["name"]) for each in facts.get("deprecated_names") or ()}
    assert old_names(option) == wanted
