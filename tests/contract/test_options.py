"""Every option we declare is the contract's: same group, name, type, default, bounds, choices and old names.

Options of our own are in the group `kilonova`.
"""

import pytest
from tests.contract import facts as novas

from kilonova import conf as configuration
from kilonova.conf import unknown

FACTS = {(each["group"], each["name"]): each for each in novas.load("config")["options"]}

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


REGISTERED_BY_PARSING = {"config-file", "config-dir", "config_source", "shell_completion", "log_options"}


def written(value):
    """A default as it would stand in a file."""
    if isinstance(value, dict):
        return ",".join(f"{key}:{each}" for key, each in value.items())
    if isinstance(value, list):
        return ",".join(str(each) for each in value)
    return str(value)


def file_with(folder, lines):
    """A configuration file of (group, name, value)."""
    text = {}
    for group, name, value in lines:
        text.setdefault(group, []).append(f"{name} = {value}")
    path = folder / "nova.conf"
    path.write_text("".join(f"[{group}]\n" + "\n".join(each) + "\n" for group, each in text.items()))
    return path


def read_all(conf):
    """Every option of ours is read, which parses its value."""
    return {
        (module.GROUP or "DEFAULT", option.name): (conf[module.GROUP] if module.GROUP else conf)[option.dest]
        for module in configuration.modules()
        for option in module.OPTIONS
    }


def test_file_with_every_option_of_nova_at_its_default_loads(tmp_path):
    lines = [
        (group, name, written(facts["default"]))
        for (group, name), facts in FACTS.items()
        if facts.get("default") is not None and name not in REGISTERED_BY_PARSING
    ]
    assert len(lines) > 500
    loaded = configuration.load(["--config-file", str(file_with(tmp_path, lines))])
    bare = tmp_path / "bare"
    bare.mkdir()
    plain = read_all(configuration.load(["--config-file", str(file_with(bare, []))]))
    values = read_all(loaded)
    differing = {key for key in plain if values[key] != plain[key]} - {
        key for key in plain if FACTS.get(key, {}).get("default_computed")
    }
    assert not differing
    told = unknown.find(loaded)
    assert [each for each in told if not each.novas] == []
    assert {(each.group, each.name) for each in told}.isdisjoint(plain)


FORMER = [
    pytest.param(group, option, former, id=f"{former.group or group}.{former.name or option.name}")
    for group, option in (param.values for param in DECLARED)
    for former in option.deprecated_opts
    if option.dest != "auth_type"
]


@pytest.mark.parametrize(("group", "option", "former"), FORMER)
def test_former_names_load(tmp_path, group, option, former):
    value = {"Boolean": "false" if option.default else "true"}.get(type(option.type).__name__, "7")
    lines = [(former.group or group, former.name or option.name, value)]
    loaded = configuration.load(["--config-file", str(file_with(tmp_path, lines))])
    assert (loaded if group == "DEFAULT" else loaded[group])[option.dest] == option.type(value)
    assert unknown.find(loaded) == []


def test_list_of_novas_options_is_the_contracts():
    wanted = {}
    for (group, name), facts in FACTS.items():
        if group.startswith("oslo_") or name in REGISTERED_BY_PARSING - {"log_options"}:
            continue
        of_group = wanted.setdefault(group, set())
        of_group.add(facts["dest"])
        for former in facts.get("deprecated_names") or ():
            former_name = (former["name"] or facts["dest"]).replace("-", "_")
            wanted.setdefault(former["group"] or group, set()).add(former_name)
    assert unknown.listed(unknown.NOVA) == {group: frozenset(names) for group, names in wanted.items()}
