"""Options of our own that the compute agent and the fake driver obey."""

from __future__ import annotations

from oslo_config import cfg, types

GROUP: str | None = "kilonova"

OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt(
        "agent_workers",
        default=48,
        min=2,
        help="Operations on different servers that a host performs at once. Each kind of work (builds, deletes, "
        "starts, stops, ...) has a limit besides, and some threads that the others leave to it.",
    ),
    cfg.FloatOpt(
        "node_write_delay",
        default=1.0,
        min=0.0,
        help="Seconds for which changes of a node's usage are collected before its record is written.",
    ),
    cfg.Opt(
        "fake_latency",
        default={},
        type=types.Dict(types.Float(min=0.0)),
        help="Fake driver: seconds that calls take, as spawn:0.5,destroy:0.1.",
    ),
    cfg.StrOpt("fake_faults", help="Fake driver: JSON file with the failures to inject; read again when it changes."),
    cfg.IntOpt("fake_vcpus", min=0, help="Fake driver: processors of the host instead of the class's own number."),
    cfg.IntOpt("fake_memory_mb", min=0, help="Fake driver: memory in MiB."),
    cfg.IntOpt("fake_local_gb", min=0, help="Fake driver: disk in GiB."),
]
