"""The script that tries every command with the lowest dependencies."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import click
import pytest

from gpuplan.cli.main import main as gpuplan

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("try_commands", REPOSITORY / "tools/try_commands.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_command_is_left_out(script: ModuleType) -> None:
    tried = {command.split()[0] for command in (*script.READING, *script.WRITING, *script.ON_A_CHANGE)}

    assert tried == {*gpuplan.list_commands(click.Context(gpuplan))} - {"init"}  # which makes the starter


def test_newer_packages_prove_nothing_of_the_lowest(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "version", lambda name: {"click": "8.20.0", "jinja2": "3.1.0"}.get(name, "0"))

    found = [*script.unexpected_versions()]

    assert "click is 8.20.0, not 8.2" in found
    assert not any(line.startswith("jinja2") for line in found)


def test_ci_tries_them() -> None:
    assert "make test-lowest\n" in (REPOSITORY / ".ci/run").read_text(encoding="utf-8")
