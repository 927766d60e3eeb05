"""Test data for each route, part and version range: samples, examples made from the schemas, systematic mutations.

Everything is in a fixed order and nothing is random, so two runs ask the same questions.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.contract import facts
from tests.contract.fact_sheets import LATEST
from tests.contract.schema_examples import UUID, below, example, flat
from tests.contract.schema_oracle import LEGACY, Oracle, Range, Route

WRONG_TYPES: list[Any] = [None, True, False, 0, 1, 1.5, "x", [], {}, [None], ["x"], {"x": "x"}]
TEXTS = [
    "",
    " ",
    "a",
    "a b",
    " a",
    "a ",
    "a\n",
    "a\tb",
    "é",
    "\u3000a",
    "\u200b",
    "\u2028",
    "\U0001f600",
    "a:b",
    "a/b",
    "a,b",
    "a.b",
    "a_b",
    "A-1",
    "0",
    "1",
    "-1",
    "1.5",
    "01",
    " 5",
    "+5",
    "1_0",
    "1e3",
    "true",
    "TRUE",
    "tRuE",
    "null",
    "None",
]
BY_FORMAT: dict[str, list[str]] = {
    "uuid": [
        UUID,
        UUID.upper(),
        UUID.replace("-", ""),
        "{" + UUID + "}",
        "urn:uuid:" + UUID,
        UUID[:-1],
        UUID + "\n",
        UUID[:-1] + "g",
        "-" + UUID,
    ],
    "date-time": [
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05.123456+01:00",
        "2026-01-02 03:04:05",
        "2026-01-02",
        "2026-01",
        "2026",
        "202601",
        "20260102T030405",
        "2026-02-30",
        "2026-01-02T24:00:00",
        "2026-01-02T03:04:60Z",
        "2026-1-2",
        "2026-01-02T3:4",
        "26-01-02",
        "2026-01-02T03:04:05+2500",
        "2026-01-02t03:04:05z",
        "now",
        "1767323045",
    ],
    "base64": ["aGVsbG8=", "aGVsbG8", "aGVs bG8=", "aGVs\nbG8=", "====", "a", "aGV$sbG8=", "YQ==YQ==", "é", "-_-_"],
    "cidr": [
        "10.0.0.0/24",
        "10.0.0.1/24",
        "10.0.0.0",
        "10.0.0.0/33",
        "10.0.0.0/255.0.0.0",
        "10/8",
        "fe80::/64",
        "fe80::1/129",
        "10.0.0.0/ 8",
        "10.0.0.0/",
        "::/0",
        "010.0.0.0/8",
        "10.0.0.0/-1",
    ],
    "uri": [
        "http://localhost/x",
        "https://h:8774/v2.1?x=1#f",
        "http:///x",
        "localhost",
        "/x",
        "ftp://[::1]/",
        "http://a b/",
        "glance://x",
        "http://",
        "http://256.1.1.1/",
        "mailto:a@b",
        "HTTP://H",
        "http://h/%zz",
        "http://u:p@h/",
        "1http://h",
    ],
    "ipv4": ["10.0.0.1", "10.0.0.256", "10.0.0", "010.0.0.1", "fe80::1", "10.0.0.1/24"],
    "ipv6": ["fe80::1", "::", "::ffff:10.0.0.1", "fe80::1%eth0", "fe80:::1", "fe80::1/64", "10.0.0.1"],
    "regex": ["a.*", "[", "(", "*", "\\", "^$", "(?P<x>a)", "a{2,1}"],
}
KEYS = ["", "a", "A b", "a:b", "a.b", "a/b", "é", "_x", "property-x", "1", "a" * 255, "a" * 256, "a\n"]


def probes(schemas: list[dict[str, Any]]) -> Iterator[Any]:
    """Values at and beyond the limits that the schemas speak of."""
    textual = any({"pattern", "format"} & set(s) for s in schemas)
    for s in schemas:
        yield from s.get("enum", [])
        if "const" in s:
            yield s["const"]
        yield from BY_FORMAT.get(s.get("format", ""), [])
        for bound in {s[k] for k in ("minimum", "maximum", "exclusiveMinimum") if k in s}:
            for n in (bound - 1, bound, bound + 1):
                yield from (n, str(n))
            yield from (bound - 0.5, bound + 0.5, f"{bound - 0.5}", bound * 10)
        for size in {s[k] for k in ("minLength", "maxLength") if k in s}:
            for n in (size - 1, size, size + 1):
                yield from ("a" * n, "1" * n) if n > 0 else ()
            yield "AAAA" * (size // 4) + "\n" * (size % 4)  # base64 of exactly this length
    if textual or any("enum" in s for s in schemas):
        yield from TEXTS
    yield from ("", "x" * 300, 2**31, 2**63, -1)


Change = tuple[bool, str, Any]
"""Whether it is about the structure, what was changed, the new value."""


@dataclass(frozen=True)
class Mutator:
    """What is changed in a valid value.

    Without `values` only the members are changed. Where an earlier version range had the same schemas, a part of the
    values, another each time, is tried again, and the structure at one end only.
    """

    values: bool
    done: Counter[Any]

    def changes(self, value: Any, own: list[Any], others: list[Any], path: tuple[Any, ...]) -> Iterator[Change]:
        """`own` are the schemas that hold here, `others` those of other versions, which are tried too."""
        mine = flat(own)
        token = (path, tuple(map(id, mine)))
        again = self.done[token]
        self.done[token] += 1
        if again and len(path) > 2 and path[0] != 0:
            return
        fresh, here = not again, flat(own + others)
        tries = [*WRONG_TYPES, *probes(here)] if self.values else [None]
        for probe in tries if fresh else [None, *tries[again % 7 :: 7]]:
            yield False, f"value {str(probe)[:20]!r}", probe
        if isinstance(value, dict):
            yield from self._of_members(value, here, fresh, fresh or len(path) <= 2)
            places: Any = list(value)
        elif isinstance(value, list):
            if self.values and fresh:
                yield from _of_lengths(value, here)
            places = range(min(len(value), 2))
        else:
            return
        for place in places:
            inner = self.changes(value[place], below(mine, place), below(flat(others), place), (*path, place))
            for structural, what, new in inner:
                yield structural, f"{place}.{what}", _with(value, place, new)

    def _of_members(
        self, value: dict[str, Any], here: list[dict[str, Any]], fresh: bool, ends: bool
    ) -> Iterator[Change]:
        for key in value:
            yield ends, f"drop {key}", {k: v for k, v in value.items() if k != key}
        yield ends, "unknown key", {**value, "unknown_key": "x"}
        for s in here:
            for key in sorted(set(s.get("properties", {})) - set(value)):
                for full in (False, True):
                    yield ends, f"add {key}", {**value, key: example(s["properties"][key], full)}
            if self.values and fresh and s.get("patternProperties"):
                member = example(next(iter(s["patternProperties"].values())), False)
                for key in KEYS:
                    yield False, f"key {key[:8]!r}", {key: member} if "maxProperties" in s else {**value, key: member}
            for n in around(s, "minProperties", "maxProperties"):
                yield (
                    False,
                    f"{n} members",
                    {f"k{i}": example((below([s], f"k{i}") or [{}])[0], False) for i in range(n)},
                )


def _with(value: Any, place: Any, new: Any) -> Any:
    """The value with another member or entry at a place."""
    return {**value, place: new} if isinstance(value, dict) else [*value[:place], new, *value[place + 1 :]]


def _of_lengths(value: list[Any], here: list[dict[str, Any]]) -> Iterator[Change]:
    yield from ((False, "twice", value + value), (False, "none", []), (False, "one more", [*value, "x"]))
    for n in sorted({n for s in here for n in around(s, "minItems", "maxItems")}) if value else ():
        first = value[0]
        yield False, f"{n} items", [f"{first}{i}" if isinstance(first, str) else first for i in range(n)]
        yield False, f"{n} equal items", value[:1] * n


def around(schema: dict[str, Any], *limits: str) -> list[int]:
    """The numbers at and beside these limits of a schema."""
    return sorted({n for limit in limits if limit in schema for n in (schema[limit] + d for d in (-1, 0, 1))})


def queries(schemas: list[Any]) -> Iterator[tuple[bool, str, Any]]:
    """Query strings as lists of strings: every known key alone with probes, repeated, unknown keys, all together."""
    yield True, "empty", {}
    yield True, "unknown key", {"unknown_key": ["x"]}
    yield True, "unknown _key", {"_unknown": ["x"]}
    known: dict[str, list[Any]] = {}
    for s in flat(schemas):
        for key in s.get("properties", {}):
            known.setdefault(key, []).append(s["properties"][key])
    for key, rows in known.items():
        members = flat(below(flat(rows), 0))
        good = str(example(members[0] if members else {}, False))
        yield True, key, {key: [good]}
        yield True, f"{key} and unknown key", {key: [good], "unknown_key": ["x"]}
        yield True, f"{key} twice", {key: [good, good]}
        for probe in [*TEXTS, *probes(members)]:
            yield False, f"{key} value", {key: [probe if isinstance(probe, str) else json.dumps(probe)]}
        yield False, f"{key} mixed", {key: [good, "\n"]}
    yield (
        True,
        "all",
        {key: [str(example((flat(below(flat(rows), 0)) or [{}])[0], False))] for key, rows in known.items()},
    )


@dataclass(frozen=True)
class Case:
    route: Route
    part: str
    version: int
    what: str
    data: Any
    valid: bool | None  # None: there is no such route in this version
    error: str | None

    def question(self) -> dict[str, Any]:
        return {
            "method": self.route.method,
            "path": self.route.path,
            "action": self.route.action,
            "microversion": f"2.{self.version}",
            "part": self.part,
            "data": self.data,
        }


class Corpus:
    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.samples = list(facts.samples("api_samples").items())

    def _samples(self, route: Route, part: str) -> list[tuple[str, Any]]:
        """The samples that some schema of this part takes, and that share its members."""
        if part == "query":
            return []
        out = []
        schemas = {r.schema for r in route.parts[part]}
        tops = {k for s in flat([self.oracle.schemas[x] for x in schemas]) for k in s.get("properties", {})}
        for name, data in self.samples:
            if (
                isinstance(data, dict)
                and data
                and set(data) <= tops
                and (not route.action or part != "body" or route.action in data)
                and any(self.oracle.error(s, data) is None for s in schemas)
            ):
                out.append((name, data))
        return out

    def _data(
        self, route: Route, part: str, span: Range, samples: list[tuple[str, Any]], done: Counter[Any]
    ) -> Iterator[tuple[bool, str, Any]]:
        own = self.oracle.schemas[span.schema]
        others = [
            self.oracle.schemas[x] for x in dict.fromkeys(r.schema for r in route.parts[part]) if x != span.schema
        ]
        if part == "query":
            yield from queries([own, *others])
            return
        for name, data in samples:
            yield True, f"sample {name}", data
        good = [s for s in samples if self.oracle.error(span.schema, s[1]) is None]
        good.sort(key=lambda s: -len(json.dumps(s[1])))
        bases = [
            ("full", example(own, True)),
            *((f"sample {n}", d) for n, d in good[:1]),
            ("minimal", example(own, False)),
        ]
        bases.sort(key=lambda b: self.oracle.error(span.schema, b[1]) is not None)  # values are tried on a valid base
        for place, (name, base) in enumerate(bases):
            yield True, name, base
            for structural, what, new in Mutator(part == "body" and place == 0, done).changes(
                base, [own], others, (place,)
            ):
                yield structural, f"{name}: {what}", new

    def cases(self, route: Route, part: str) -> Iterator[Case]:
        """Structure is asked at both ends of each range, values at one end in turn."""
        samples = self._samples(route, part)
        done: dict[bool, Counter[Any]] = {
            True: Counter(),
            False: Counter(),
        }  # the legacy endpoint must not use up what 2.1 needs
        for span in route.parts[part]:
            ends = sorted({max(span.low, route.low), min(span.high, route.high)})
            ends = [e for e in ends if span.low <= e <= span.high and route.low <= e <= route.high]
            if span.low == LEGACY and route.low == 1:  # only what exists in 2.1 exists on the legacy endpoint
                ends = [LEGACY, *ends]
            if not ends:
                continue
            late = [e for e in ends if e != LEGACY] or ends
            seen: set[str] = set()
            for structural, what, data in self._data(route, part, span, samples, done[late == [LEGACY]]):
                text = json.dumps(data, sort_keys=True)
                if text in seen:
                    continue
                seen.add(text)
                for version in ends if structural else [late[len(seen) % len(late)]]:
                    error = self.oracle.error(span.schema, data, relaxed=version == LEGACY and part != "response")
                    yield Case(route, part, version, what, data, error is None, error)
        for version in (route.low - 1, route.high + 1):
            if 1 <= version <= LATEST and route.parts[part] and part != "response":
                data = {} if part == "query" else example(self.oracle.schemas[route.parts[part][0].schema], False)
                yield Case(route, part, version, "outside the route", data, None, "no such route")
