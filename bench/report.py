"""Table, plot and JSON of one run."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

Figures = Mapping[str, float]

WIDEST = 200
"""Columns of a terminal that a table takes at most."""

SELDOM = 0.05
"""Kinds of work that less than every twentieth build causes are not shown."""


def ratios(ours: Figures, peers: Figures) -> dict[str, float]:
    """How many times more the peer takes, for every figure that both have."""
    return {name: peers[name] / ours[name] for name in ours if name in peers and ours[name]}


def show(ours: Figures, peers: Figures) -> None:
    _table("kilonova beside the peer", ours, peers)


def show_work(ours: Figures, peers: Figures) -> None:
    """The profile that explains the times: what one build asks of everything around it."""
    seen = {name for side in (ours, peers) for name, amount in side.items() if amount >= SELDOM}
    kept = [{name: side.get(name, 0.0) for name in seen} for side in (ours, peers)]
    _table("work per build", *kept)


def _table(title: str, ours: Figures, peers: Figures) -> None:
    table = Table(title=title)
    for column in ("figure", "peer", "kilonova", "peer / kilonova"):
        table.add_column(column, justify="left" if column == "figure" else "right", no_wrap=True)
    times = ratios(ours, peers)
    for name in sorted(set(ours) | set(peers)):
        cells = [f"{side[name]:.2f}" if name in side else "-" for side in (peers, ours)]
        table.add_row(name, *cells, f"{times[name]:.2f}x" if name in times else "-")
    # A figure's name is read whole, or not at all: in a file or a narrow terminal the table may be wider.
    wanted = Console(width=WIDEST).measure(table).maximum
    Console(width=max(Console().width, wanted)).print(table)


def write(out: pathlib.Path, figures: Mapping[str, Figures], per_build: Mapping[str, Figures]) -> None:
    """`bench.json` and `bench.png` in the folder `out`; both mappings have `kilonova` and `peer`."""
    out.mkdir(parents=True, exist_ok=True)
    times = ratios(figures["kilonova"], figures["peer"])
    work = {**per_build, "ratios": ratios(per_build["kilonova"], per_build["peer"])}
    text = json.dumps({**figures, "ratios": times, "work_per_build": work}, indent=2, sort_keys=True)
    (out / "bench.json").write_text(text)
    _plot(out / "bench.png", {k: v for k, v in times.items() if "." not in k or k.endswith(".total")})


def _plot(path: pathlib.Path, times: Figures) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = sorted(times)
    figure, axes = pyplot.subplots(figsize=(8, 0.6 * len(names) + 1.5), layout="constrained")
    bars = axes.barh(names, [times[n] for n in names], color="#4477aa")
    axes.bar_label(bars, fmt="%.1fx", padding=3)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("peer / kilonova (more than 1: kilonova is faster or smaller)")
    axes.margins(x=0.12)
    axes.invert_yaxis()
    figure.savefig(path, dpi=120)
