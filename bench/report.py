"""Table, plot and JSON of one run."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

Figures = Mapping[str, float]


def ratios(ours: Figures, peers: Figures) -> dict[str, float]:
    """How many times more the peer takes, for every figure that both have."""
    return {name: peers[name] / ours[name] for name in ours if name in peers and ours[name]}


def show(ours: Figures, peers: Figures) -> None:
    table = Table(title="kilonova beside the peer")
    for column in ("figure", "peer", "kilonova", "peer / kilonova"):
        table.add_column(column, justify="left" if column == "figure" else "right")
    times = ratios(ours, peers)
    for name in sorted(set(ours) | set(peers)):
        cells = [f"{side[name]:.2f}" if name in side else "-" for side in (peers, ours)]
        table.add_row(name, *cells, f"{times[name]:.2f}x" if name in times else "-")
    Console().print(table)


def write(out: pathlib.Path, ours: Figures, peers: Figures) -> None:
    """`bench.json` and `bench.png` in the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    times = ratios(ours, peers)
    (out / "bench.json").write_text(
        json.dumps({"peer": peers, "kilonova": ours, "ratios": times}, indent=2, sort_keys=True)
    )
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
