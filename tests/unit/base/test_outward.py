"""Words of tools lose the paths in them, and nothing else."""

from __future__ import annotations

import pytest

from kilonova.base.outward import SOMETHING, without_paths


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "qemu-img: Could not open '/var/lib/nova/_base/3f.part': Image is corrupt",
            f"qemu-img: Could not open '{SOMETHING}': Image is corrupt",
        ),
        ("/srv/instances/x/disk.info cannot be read", f"{SOMETHING} cannot be read"),
        ("path=/a/b, size 3", f"path={SOMETHING}, size 3"),
        ('[Errno 28] No space left on device: "/data/x y"', f'[Errno 28] No space left on device: "{SOMETHING} y"'),
        ("file:///etc/shadow is not an image", f"{SOMETHING} is not an image"),
        ("~/images/x", SOMETHING),
    ],
)
def test_paths_are_taken_out(said: str, told: str) -> None:
    assert without_paths(said) == told


@pytest.mark.parametrize(
    "said",
    [
        "The device /dev/vdb is busy",
        "read and/or write, 3 / 4, application/json",
        "The volume 11111111-1111-4111-8111-111111111111 is gone",
        "declared qcow2, found raw",
    ],
)
def test_what_is_no_path_stays(said: str) -> None:
    assert without_paths(said) == said
