"""What is kept of a failure."""

from __future__ import annotations

from kilonova.conductor import failures
from kilonova.contract import exceptions


def test_details_begin_with_the_schedulers_explanation():
    explained = {"text": "ComputeFilter: 0 of 2 left\n  disabled: h1, h2"}
    kept = failures.describe(exceptions.NoValidHost(reason="None is left.", explanation=explained))
    assert kept["message"] == "No valid host was found. None is left."
    assert kept["details"].startswith(explained["text"])


def test_other_failures_keep_their_traceback_alone():
    kept = failures.describe(ValueError("secret"))
    assert (kept["message"], kept["code"]) == ("ValueError", 500)
    assert kept["details"].startswith("ValueError")
