"""What the bench counts as work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench import report, work

UUID = "6f1b5cc1-b15d-4fde-a48c-3d67d5b53ccb"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (f"GET /v2.0/ports?tenant_id=x&device_id={UUID} 200 12", "GET /v2.0/ports?device_id&tenant_id"),
        (f"PUT /allocations/{UUID} 204 3", "PUT /allocations/{id}"),
        (f"GET /v2.0/quotas/{UUID.replace('-', '')} 200 3", "GET /v2.0/quotas/{id}"),
        (f"GET /v2.0/networks?id={UUID}&id={UUID} 200 3", "GET /v2.0/networks?id"),
    ],
)
def test_requests_that_differ_in_ids_only_are_of_one_kind(line: str, kind: str) -> None:
    assert work.kind(line) == kind


def test_requests_before_the_reading_do_not_count(tmp_path: Path) -> None:
    log = tmp_path / "neutron.access"
    log.write_text("GET /a 200 1\n")
    offset = log.stat().st_size
    with log.open("a") as more:
        more.write("POST /v2.0/ports 201 90\nPOST /v2.0/ports 201 80\n")
    assert work.requests(log, offset) == {"POST /v2.0/ports": 2}
    assert work.requests(tmp_path / "absent") == {}


def test_cpu_time_of_children_that_ended_counts() -> None:
    before = work.cpu_seconds(os.getpid())
    subprocess.run([sys.executable, "-c", "sum(range(6_000_000))"], check=True)
    assert work.cpu_seconds(os.getpid()) > before


def test_seldom_work_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    report.show_work({"requests.neutron": 3.0, "requests.neutron GET /rare": 0.01}, {"requests.neutron": 21.0})
    shown = capsys.readouterr().out
    assert "7.00x" in shown
    assert "rare" not in shown
