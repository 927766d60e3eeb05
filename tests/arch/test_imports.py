"""The rooms and who may import whom, as pyproject.toml declares them."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def test_import_linter_contracts_hold() -> None:
    run = subprocess.run(
        [str(pathlib.Path(sys.executable).parent / "lint-imports")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert run.returncode == 0, run.stdout + run.stderr
