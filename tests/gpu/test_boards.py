"""The boards of this machine are as the catalog says. `make test-gpu` asks; elsewhere this is skipped."""

from __future__ import annotations

import os

import pytest

from gpuplan.compiler.catalog.loading import load
from tests.gpu.comparing import Board, differences, find_model
from tests.gpu.nvml import NoBoardError, read_boards


@pytest.fixture(scope="module")
def boards() -> list[Board]:
    if not os.environ.get("GPUPLAN_TEST_GPU"):
        pytest.skip("`make test-gpu` asks the GPUs of this machine")
    try:
        found = read_boards()
    except NoBoardError as error:
        pytest.skip(str(error))
    return found or pytest.skip("the driver knows no GPU")


def test_each_board_is_as_the_catalog_says(boards: list[Board]) -> None:
    models = load().all()
    pairs = [(board, model) for board in boards if (model := find_model(board, models)) is not None]
    if not pairs:
        pytest.skip(f"the catalog has no {' or '.join(sorted({board.label for board in boards}))}")
    assert {board.label: differences(board, model) for board, model in pairs if differences(board, model)} == {}
