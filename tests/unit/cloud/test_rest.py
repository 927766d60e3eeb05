"""The client that sets a cloud up waits for services that are not there yet."""

from collections.abc import Callable
from typing import Any

import pytest

from kilonova.cloud import rest


@pytest.fixture
def client(make_site: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Makes a request that is answered with these codes, one after the other; returns the methods that were sent."""

    def call(method: str, *codes: int) -> list[str]:
        made, sent, answers = rest.Rest(make_site()), [], iter(codes)
        made.token = "t"

        def send(method: str, url: str, *rest_of: object) -> Any:
            sent.append(method)
            if (code := next(answers)) >= 400:
                raise rest.RestError(method, url, code, "")
            return code, {}, b"{}"

        monkeypatch.setattr(made, "send", send)
        monkeypatch.setattr(rest.time, "sleep", lambda seconds: None)
        try:
            assert made.call(method, "http://neutron/") == {}
        except rest.RestError as error:
            sent.append(str(error.code))
        return sent

    return call


def test_what_only_asks_is_asked_again_while_a_service_is_unavailable(client: Callable[..., list[str]]) -> None:
    assert client("GET", 503, 503, 200) == ["GET"] * 3
    assert client("GET", 404) == ["GET", "404"]
    assert client("POST", 503) == ["POST", "503"]


def test_no_service_is_waited_for_without_end(
    client: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "PATIENCE", -1.0)
    assert client("GET", 503) == ["GET", "503"]
