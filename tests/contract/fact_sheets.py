"""The facts of the contract and the project's exports as flat sheets, and their comparison.

A sheet is `{name: {detail: value}}`. The same functions read a document of `facts` and an export of
`python -m kilonova.contract export KIND` (which is a subset of that document's structure), so whatever an export may
leave out gets its default here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from dataclasses import field as dc_field
from typing import Any

from tests.contract import facts as novas

Facts = dict[str, dict[str, Any]]
LATEST = 104


@dataclass(frozen=True)
class Between:
    """A set of values that must hold `least` and may hold `most`."""

    least: frozenset[Any]
    most: frozenset[Any]

    def accepts(self, value: Any) -> bool:
        have = value.least if isinstance(value, Between) else frozenset(value if isinstance(value, list) else [value])
        return self.least <= have <= self.most


def shape(path: str) -> str:
    """A path without its parameters' names: /servers/{id} -> /servers/{}"""
    return re.sub(r"\{[^}]*\}", "{}", path)


def minor(version: str | None, none: int) -> int:
    return none if version is None else int(version.split(".")[1])


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _sorted(values: Iterable[Any] | None) -> list[Any] | None:
    return None if values is None else sorted(values, key=_key)


def by_version(rows: list[dict[str, Any]], value: str, low: int, high: int) -> list[list[Any]]:
    """Version-bounded rows as [from, to, values] with equal neighbours joined, so that the cut does not matter."""
    out: list[list[Any]] = []
    for v in range(low, high + 1):
        found: set[Any] = set()
        for row in rows:
            if minor(row.get("min"), 0) <= v <= minor(row.get("max"), LATEST):
                found |= set(row[value]) if isinstance(row[value], list) else {row[value]}
        if out and out[-1][2] == sorted(found):
            out[-1][1] = v
        else:
            out.append([v, v, sorted(found)])
    return out


def routes(doc: Any) -> Facts:
    out: Facts = {}
    for r in doc["routes"]:
        if "redirect_to" in r:
            out[f'redirect "{r["path"]}"'] = {"to": r["redirect_to"]}
            continue
        if r.get("app"):  # version documents: not routes of the versioned API
            continue
        low, high = max(minor(r.get("min"), 1), 1), minor(r.get("max"), LATEST)
        name = f"{r['method']} {shape(r['path'])}" + (f" #{r['action']}" if r.get("action") else "")
        fact: dict[str, Any] = {"versions": [low, high], "removed": bool(r.get("removed"))}
        out[name] = fact
        if fact["removed"]:
            continue
        fact["errors"] = by_version(r.get("expected_errors", []), "codes", low, high)
        if "success_explicit" in r:  # the handler chooses between these and the declared code
            declared = {s["code"] for s in r["success"]}
            fact["success"] = Between(frozenset(r["success_explicit"]), frozenset(r["success_explicit"]) | declared)
        else:
            fact["success"] = by_version(r["success"], "code", low, high)
        rules, operation = r.get("policies", {}), r.get("policies_by_operation")
        for rule, how in rules.items():  # found in code, and confirmed by the rule's own list of operations
            if operation is None or rule in operation or (not operation and not how.get("soft")):
                fact[f"policy {rule}"] = "soft" if how.get("soft") else "hard"
    return out


def a_field(f: dict[str, Any]) -> dict[str, Any]:
    default = f.get("default")
    if default == {"value": "set()"}:
        default = {"value": []}
    out = {
        "type": "Enum" if f.get("base") == "Enum" else f["type"],
        "nullable": bool(f.get("nullable")),
        "default": default,
        "read_only": bool(f.get("read_only")),
        "enum": _sorted(f.get("enum")),
        "object": f.get("object"),
        "subclasses": bool(f.get("subclasses")),
    }
    out["element"] = a_field(f["element"]) if f.get("element") else None
    return out


def _objects(objects: dict[str, Any], prefix: str = "") -> Facts:
    out: Facts = {}
    for name, o in objects.items():
        out[prefix + name] = {"version": o["version"]}
        back = o.get("backlevel", {})
        removed, limits = back.get("removed_when_target_at_most", {}), back.get("enum_limits", {})
        for fname, f in o["fields"].items():
            fact = a_field(f)
            fact["removed_when_target_at_most"] = removed.get(fname)
            fact["enum_limits"] = {
                v: [x["up_to"], x.get("rewritten", "refused")]
                for v, x in limits.get(fname, {}).items()
                if x.get("raises") != "KeyError"
            }  # KeyError: an artefact of half-filled samples
            out[f"{prefix}{name}.{fname}"] = fact
    return out


def objects(doc: Any) -> Facts:
    return _objects(doc["objects"]) | {"service_version": {"value": doc.get("service_version")}}


def args(rows: list[dict[str, Any]]) -> list[list[Any]]:
    return [[a["name"], a.get("kind", ""), *([a["default"]] if "default" in a else [])] for a in rows]


def remotable(doc: Any) -> Facts:
    return {
        f"{name}.{m}": {"kind": kind, "args": args(a[1:] if a and a[0]["name"] == "context" else a)}
        for name, o in doc["objects"].items()
        for kind in ("remotable_methods", "remotable_classmethods")
        for m, a in o.get(kind, {}).items()
    }


def _cap(cap: str | None) -> tuple[int, ...]:
    return (99,) if cap is None else tuple(map(int, cap.split(".")))


def _sent(rows: list[dict[str, Any]], caps: list[tuple[int, ...]]) -> dict[str, Any]:
    """What a client method sends at each version cap: the whole message, or, where an older server refuses that, the
    message without what it refuses. Rows are listed newest first, only where something changes."""
    series: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        series.setdefault((row.get("variant", "full"), _key(row.get("when"))), []).append(row)
    whens = sorted({w for _, w in series})

    def at(variant: str, when: str, cap: tuple[int, ...]) -> dict[str, Any] | None:
        hits = [r for r in series.get((variant, when), []) if _cap(r["cap"]) >= cap]
        return min(hits, key=lambda r: _cap(r["cap"]))["sent"] if hits else None

    details: dict[str, list[list[Any]]] = {}
    for cap in caps:
        found = []
        for when in whens:
            tries = (at(v, when, cap) for v in ("full", "conditional_falsy", "optional_omitted"))
            found.append(next((s for s in tries if s and "raises" not in s), None))
        sent = found[0]
        value: dict[str, Any] = {"refused": sent is None}
        if sent is not None:
            value |= {
                "mode": sorted({s["mode"] for s in found if s}),
                "version": sent["version"],
                "topic": sent.get("topic"),
                "namespace": sent.get("namespace"),
                "fanout": bool(sent.get("fanout")),
                "to one server": sent.get("server") is not None,
                "args": sorted(sent.get("args") or []),
                "timeout": sent.get("timeout") or ("rpc_response_timeout" if sent["mode"] == "call" else None),
                "monitor": bool(sent.get("call_monitor")),
            }
        for k, v in value.items():
            steps = details.setdefault(k, [])
            if not steps or steps[-1][1] != v:
                steps.append([".".join(map(str, cap)), v])
    return details


def _rpc_caps(doc: Any) -> dict[str, list[tuple[int, ...]]]:
    return {
        api: sorted({_cap(r["cap"]) for m in a.get("methods", {}).values() for r in m["by_cap"]}, reverse=True)
        for api, a in doc["apis"].items()
    }


def rpc(doc: Any) -> Facts:
    out: Facts = {
        "context": {"fields": sorted(doc.get("context_fields", []))},
        "compute_rpc_by_service_version": dict(doc.get("compute_rpc_by_service_version", {})),
    }
    for api, a in doc["apis"].items():
        target = a.get("target", {})
        out[f"{api} target"] = {k: target.get(k) for k in ("topic", "alt_topic", "version", "namespace")}
        if a.get("version_aliases"):
            out[f"{api} version_aliases"] = dict(a["version_aliases"])
        for side in ("server", "server_v5"):
            s = a.get(side)
            if s is None:
                continue
            out[f"{api} {side}"] = {"version": s["version"], "namespace": s.get("namespace")}
            for m, rows in s["methods_taking_context"].items():
                out[f"{api} {side} {m}"] = {
                    "args": _sorted(args(rows)),
                    "expected_exceptions": _sorted(s.get("expected_exceptions", {}).get(m, [])),
                }
        for m, x in a.get("methods", {}).items():
            if any(r["sent"] for r in x["by_cap"]):
                out[f"{api} client {m}"] = _sent(x["by_cap"], _rpc_caps(novas.load("rpc")).get(api, []))
    return out


def policies(doc: Any) -> Facts:
    out: Facts = {}
    for r in doc["rules"]:
        old = r.get("deprecated_rule") or {}
        out[r["name"]] = {
            "check": " ".join(r["check"].split()),
            "scope_types": _sorted(r.get("scope_types")),
            "operations": sorted({f"{o['method']} {shape(o['path'])}" for o in r.get("operations") or []}),
            "deprecated_rule": [old.get("name"), old.get("check")],
            "deprecated_for_removal": bool(r.get("deprecated_for_removal")),
        }
    return out


def _type(t: dict[str, Any] | None) -> dict[str, Any] | None:
    if t is None:
        return None
    out = {k: t.get(k) for k in ("min", "max", "regex")}
    choices = [None if c == "None" else c for c in t.get("choices") or []]  # the contract file writes null as "None"
    return out | {
        "type": t["type"],
        "choices": _sorted(choices),
        "schemes": _sorted(t.get("schemes")),
        "item": _type(t.get("item")),
        "key": _type(t.get("key")),
    }


def options(doc: Any) -> Facts:
    out: Facts = {}
    for o in doc["options"]:
        if not o.get("listed", True):  # options of libraries, not published by Nova
            continue
        fact = _type(o) or {}
        if not o.get("default_computed"):
            fact["default"] = {"is": o.get("default")}  # null, false and [] are different defaults
        for k in ("mutable", "required", "secret", "advanced", "multi", "deprecated_for_removal"):
            fact[k] = bool(o.get(k))
        fact["name"] = o["name"]
        fact["deprecated_names"] = _sorted(
            [d.get("group") or o["group"], d["name"] or o["name"]] for d in o.get("deprecated_names") or []
        )
        out[f"{o['group']}.{o['dest']}"] = fact
    return out


def notifications(doc: Any) -> Facts:
    out = _objects(doc["objects"], "object ")
    for name, e in doc["event_types"].items():
        out[f"event {name}"] = {
            "priority": _sorted(e["priority"]),
            "publisher": _sorted(e["publisher"]),
            "payloads": e["payloads"],
        }
    return out | {f"legacy {name}": {} for name in doc["legacy_event_types"]}


def states(doc: Any) -> Facts:
    out: Facts = {}
    for kind in ("vm_states", "task_states"):
        for const, v in doc.get(kind, {}).items():
            out[f"{kind} {const if isinstance(v, list) else v}"] = {"values": _sorted(v)} if isinstance(v, list) else {}
    out |= {f"power_states {k}": {"value": v} for k, v in doc.get("power_states", {}).items()}
    out |= {f"instance_actions {v}": {} for v in doc.get("instance_actions", {}).values()}
    for kind in ("instance_action_events", "migration_types", "migration_statuses", "host_status_values"):
        out |= {f"{kind} {v}": {} for v in doc.get(kind, [])}
    out |= {f"api_status_map {k}": dict(v) for k, v in doc.get("api_status_map", {}).items()}
    for route, methods in doc.get("rest_action_states", {}).items():
        rules = {
            m: {
                k: _sorted(r[k]) if isinstance(r.get(k), list) else r.get(k)
                for k in ("vm_state", "task_state", "rejected", "other_guards")
            }
            | {k: bool(r.get(k)) for k in ("must_have_launched", "lock_checked", "host_required", "host_must_be_up")}
            for m, r in methods.items()
        }
        same = len({_key(r) for r in rules.values()}) == 1  # several ways to one effect: the inner name is no contract
        for m, rule in rules.items():
            out[f"action {shape(route)}" + ("" if same else f" ({m})")] = rule
    return out


def exceptions(doc: Any) -> Facts:
    return {
        n: {"code": e.get("code"), "safe": bool(e.get("safe")), "fields": _sorted(e.get("fields") or [])}
        for n, e in doc["exceptions"].items()
    }


def extra_specs(doc: Any) -> Facts:
    return {
        n: {
            "type": e["type"],
            "min": e.get("min"),
            "max": e.get("max"),
            "pattern": e.get("pattern"),
            "enum": _sorted(e.get("enum")),
            "deprecated": bool(e.get("deprecated")),
            "parameters": [[p["name"], p["pattern"]] for p in e.get("parameters") or []],
        }
        for n, e in doc["extra_spec_validators"].items()
    }


def image_properties(doc: Any) -> Facts:
    out: Facts = {n: a_field(f) for n, f in doc["image_properties"].items()}
    return out | {f"legacy {k}": {"is now": v} for k, v in doc["legacy_image_property_map"].items()}


def filters(doc: Any) -> Facts:
    out: Facts = {
        f"filter {n}": {
            "run_filter_once_per_request": bool(f.get("run_filter_once_per_request")),
            "run_on_rebuild": bool(f.get("run_on_rebuild")),
            "aggregate_keys": _sorted(f.get("aggregate_keys") or []),
        }
        for n, f in doc["filters"].items()
    }
    out |= {
        f"weigher {n}": {"aggregate_keys": _sorted(w.get("aggregate_keys") or [])} for n, w in doc["weighers"].items()
    }
    out |= {f"request filter {r['name']}": {} for r in doc["request_filters_in_order"]}
    return out | {"enabled_filters_default": {"in order": doc["enabled_filters_default"]}}


def _arg(a: dict[str, Any]) -> dict[str, Any]:
    return {
        "flags": _sorted(a.get("flags")),
        "required": bool(a.get("required")),
        "nargs": a.get("nargs"),
        "type": a.get("type"),
        "default": a.get("default"),
        "choices": _sorted(a.get("choices")),
        "action": a.get("action"),
    }


def cli(doc: Any) -> Facts:
    out: Facts = {}
    for program in ("nova-manage", "nova-status", "nova-policy"):
        for category, c in doc.get(program, {}).items():
            actions = {f"{category} {n}": a for n, a in c["actions"].items()} if "actions" in c else {category: c}
            for name, a in actions.items():
                if a.get("unintended"):
                    continue
                out[f"{program} {name}"] = {"exit codes": _sorted(a.get("documented_exit_codes"))}
                place = 0
                for arg in a.get("args", []):
                    place += not arg.get("flags")
                    label = _sorted(arg["flags"])[0] if arg.get("flags") else f"#{place}"  # type: ignore[index]
                    out[f"{program} {name} {label}"] = _arg(arg)
    out |= {f"script {n}": {} for n in doc.get("entry_points", {}).get("console_scripts", {})}
    out |= {f'upgrade check "{n}"': {} for n in doc.get("upgrade_checks", [])}
    return out | {f"online migration {n}": {} for n in doc.get("online_data_migrations", [])}


def periodic_tasks(doc: Any) -> Facts:
    return {
        f"{t['manager']}.{t['name']}": {"spacing": t.get("spacing"), "run_immediately": bool(t.get("run_immediately"))}
        for t in doc["tasks"]
    }


def virt(doc: Any) -> Facts:
    out: Facts = {f"capability {k}": {"trait": v} for k, v in doc["capability_traits"].items()}
    out |= {f"external event {n}": {} for n in doc["external_events"]["names"]}
    out |= {f"external event status {n}": {} for n in doc["external_events"]["statuses"]}
    return out | {f"lifecycle {k}": {"value": v} for k, v in doc["lifecycle_events"].items()}


def _grown(name: str, contract: Facts, ours: Facts) -> bool:
    """A field added to an object of the contract changes the wire."""
    owner, dot, _ = name.rpartition(".")
    return bool(dot) and owner in contract


def _alias(name: str, contract: Facts, ours: Facts) -> bool:
    """An option of ours under a name that is an old name of a contract option."""
    group, _, dest = name.partition(".")
    old = {(g, n.replace("-", "_")) for f in contract.values() for g, n in f["deprecated_names"]}
    return (group, dest) in old


def _needed(name: str, contract: Facts, ours: Facts) -> bool:
    """An argument that a contract command does not have and that must be given."""
    owner, _, label = name.rpartition(" ")
    return owner in contract and (
        ours[name].get("required", False) or (label.startswith("#") and ours[name].get("nargs") != "?")
    )


@dataclass(frozen=True)
class Kind:
    document: str
    facts: Callable[[Any], Facts]
    collides: Callable[[str, Facts, Facts], bool] = lambda name, contract, ours: False


KINDS: dict[str, Kind] = {
    "routes": Kind("rest_routes", routes),
    "policies": Kind("policies", policies),
    "states": Kind("states", states, lambda n, c, o: n.split()[0] in ("vm_states", "task_states", "power_states")),
    "objects": Kind("objects", objects, _grown),
    "remotable": Kind("objects", remotable),
    "rpc": Kind("rpc", rpc),
    "notifications": Kind("notifications", notifications, _grown),
    "exceptions": Kind("exceptions", exceptions),
    "options": Kind("config", options, _alias),
    "filters": Kind("scheduler", filters),
    "extra_specs": Kind("scheduler", extra_specs),
    "image_properties": Kind("scheduler", image_properties, lambda n, c, o: n.startswith("legacy ")),
    "cli": Kind("cli", cli, _needed),
    "periodic_tasks": Kind("periodic_tasks", periodic_tasks),
    "virt": Kind("virt_driver", virt),
}


@dataclass
class Result:
    names: int = 0
    names_total: int = 0
    details: int = 0
    details_total: int = 0
    wrong: int = 0
    extra: int = 0
    differences: list[dict[str, Any]] = dc_field(default_factory=list)

    @property
    def share(self) -> float:
        """Names count like details, so that a kind of bare names is measured too."""
        return (self.names + self.details) / ((self.names_total + self.details_total) or 1)

    @property
    def complete(self) -> bool:
        return not self.wrong and self.names == self.names_total


def equal(want: Any, have: Any) -> bool:
    if isinstance(want, Between):
        if isinstance(have, list) and have and isinstance(have[0], list):  # by_version rows
            have = sorted({c for row in have for c in row[2]})
        return want.accepts(have)
    return _key(want) == _key(have)  # json keeps 1, 1.0 and true apart


def said(value: Any) -> bool:
    """Whether a value says something: null, false and empty are the same silence, and it does not count as a detail."""
    return value is not None and value is not False and value not in ([], {}, [None, None])


def shown(value: Any) -> Any:
    return {"least": sorted(value.least), "most": sorted(value.most)} if isinstance(value, Between) else value


def compare(kind: Kind, contract: Facts, ours: Facts) -> Result:
    """Names present, details equal; wrong = present but different, or an addition that collides."""
    r = Result(
        names_total=len(contract), details_total=sum(map(said, (v for f in contract.values() for v in f.values())))
    )

    def differ(sort: str, name: str, detail: str | None = None, want: Any = None, have: Any = None) -> None:
        r.differences.append(
            {"sort": sort, "name": name, "detail": detail, "contract": shown(want), "ours": shown(have)}
        )

    for name, want in sorted(contract.items()):
        have = ours.get(name)
        if have is None:
            differ("MISSING", name)
            continue
        r.names += 1
        for detail, value in want.items():
            if equal(value, have.get(detail)) or not (said(value) or said(have.get(detail))):
                r.details += said(value)
            else:
                r.wrong += 1
                r.details_total += not said(value)
                differ("WRONG", name, detail, value, have.get(detail))
    for name in sorted(set(ours) - set(contract)):
        bad = kind.collides(name, contract, ours)
        r.wrong += bad
        r.extra += not bad
        differ("COLLIDES" if bad else "EXTRA", name)
    return r


def of_contract(kind: str) -> Facts:
    return KINDS[kind].facts(novas.load(KINDS[kind].document))
