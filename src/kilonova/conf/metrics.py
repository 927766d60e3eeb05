"""[metrics]: weighing hosts by what their monitors measure."""

from __future__ import annotations

from oslo_config import cfg

GROUP: str | None = "metrics"
OPTIONS: list[cfg.Opt] = [
    cfg.FloatOpt("weight_multiplier", default=1.0, help="Weight of the measured values together."),
    cfg.ListOpt("weight_setting", default=[], help="name=ratio pairs: the metrics to use and what each counts."),
    cfg.BoolOpt(
        "required",
        default=True,
        help="A host that lacks a metric is an error; otherwise it weighs weight_of_unavailable.",
    ),
    cfg.FloatOpt("weight_of_unavailable", default=-10000.0, help="Weight of a host that lacks a metric."),
]
