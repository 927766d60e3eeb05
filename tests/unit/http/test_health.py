"""``/healthcheck`` as load balancers ask for it, in front of an application."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import falcon.testing
import pytest
from oslo_config import cfg

from kilonova import conf as configuration
from kilonova.wire.http import health


def inner(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("300 Multiple Choices", [("Content-Type", "text/plain"), ("Content-Length", "0")])
    return []


def configured(tmp_path: Path, text: str) -> cfg.ConfigOpts:
    file = tmp_path / "nova.conf"
    file.write_text(f"[healthcheck]\n{text}\n")
    return configuration.load(["--config-file", str(file)])


def client(tmp_path: Path, text: str = "") -> falcon.testing.TestClient:
    return falcon.testing.TestClient(health.Health(inner, configured(tmp_path, text)))


@pytest.mark.parametrize("path", ["/healthcheck", "/healthcheck/"])
def test_who_asks_without_a_token_hears_that_requests_are_taken(tmp_path: Path, path: str) -> None:
    asked = client(tmp_path)
    assert asked.simulate_get(path).status_code == 200
    answer = asked.simulate_get(path, headers={"Accept": "application/json"})
    assert answer.json == {"detailed": False, "reasons": []}
    answer = asked.simulate_head(path)
    assert (answer.status_code, answer.content) == (204, b"")
    assert asked.simulate_get("/healthchecks").status_code == 300


def test_a_file_takes_the_service_out_of_the_balancers_list(tmp_path: Path) -> None:
    asked = client(tmp_path, f"backends = disable_by_file\ndisable_by_file_path = {tmp_path}/away")
    answer = asked.simulate_get("/healthcheck")
    assert (answer.status_code, answer.text) == (200, "OK")
    (tmp_path / "away").touch()
    answer = asked.simulate_get("/healthcheck")
    assert (answer.status_code, answer.text) == (503, "DISABLED BY FILE")
    assert asked.simulate_head("/healthcheck").status_code == 503


def test_who_may_not_ask_is_answered_by_the_application(tmp_path: Path) -> None:
    asked = client(tmp_path, "allowed_source_ranges = 192.0.2.0/24")
    assert asked.simulate_get("/healthcheck", remote_addr="192.0.2.7").status_code == 200
    assert asked.simulate_get("/healthcheck", remote_addr="203.0.113.9").status_code == 300
    asked = client(tmp_path, "ignore_proxied_requests = true")
    assert asked.simulate_get("/healthcheck", headers={"X-Forwarded-For": "a"}).status_code == 300


def test_what_is_wrong_with_its_options_is_said_at_once_a_line_each(tmp_path: Path) -> None:
    assert list(health.wrong(configured(tmp_path, "detailed = perhaps"))) == [
        f"[healthcheck] detailed: Unexpected boolean value 'perhaps' ({tmp_path}/nova.conf)"
    ]
    text = "allowed_source_ranges = everywhere,10.0.0.0/8\nbackends = disable_by_file,enable_by_files,no_such"
    lines = list(health.wrong(configured(tmp_path, text)))
    assert [line.partition(": ")[0] for line in lines] == [
        "[healthcheck] allowed_source_ranges",
        "[healthcheck] backends",
        "[healthcheck] backends",
    ]
    assert "there is no no_such; known are disable_by_file" in lines[1]
    assert not list(health.wrong(configured(tmp_path, "backends = disable_by_file")))
