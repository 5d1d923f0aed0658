"""`gpuplan pack` at the command line."""

from __future__ import annotations

from pathlib import Path

from tests.cli.runs import run


def test_what_to_ask_prometheus_needs_no_platform(tmp_path: Path) -> None:
    result = run("pack", "--queries", cwd=tmp_path)
    assert (result.code, result.err) == (0, "")
    assert "/api/v1/query_range" in result.out
    assert "DCGM_FI_DEV_FB_USED" in result.out
