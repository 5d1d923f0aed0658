"""A place in a file that an argument names is said as the reader can open it, wherever the platform is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.runs import REPOSITORY, run

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {bad: 1}\n"
DEMAND = "apiVersion: gpuplan.dev/v1\nkind: Demand\nmetadata: {name: a}\nspec: {needs: [{team: nobody, pods: 1}]}\n"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (("check",), POD),
        (("pack", "-c", "dev"), DEMAND),
        (("import", "-c", "dev", "--dry-run"), "{"),
        (("drift", "-c", "dev"), "{"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
@pytest.mark.parametrize("folder", [".", "platform"])
def test_a_file_of_an_argument_is_where_the_reader_named_it(
    tmp_path: Path, command: tuple[str, ...], text: str, folder: str
) -> None:
    platform = tmp_path / folder
    platform.mkdir(exist_ok=True)
    for name in ("policies", "overlays"):
        shutil.copytree(REPOSITORY / name, platform / name)
    (tmp_path / "named.yaml").write_text(text, encoding="utf-8")

    done = run("-C", folder, *command, "named.yaml", cwd=tmp_path)

    assert "--> named.yaml:" in done.out + done.err
