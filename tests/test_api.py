"""What Python programs may import from `gpuplan`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gpuplan
from tests.cli.platforms import a_broken_platform, a_platform


@pytest.mark.parametrize("name", gpuplan.__all__)
def test_all_that_is_promised_is_there(name: str) -> None:
    assert getattr(gpuplan, name) is not None
    assert name in dir(gpuplan)


def test_nothing_else_is_there() -> None:
    with pytest.raises(AttributeError, match="module 'gpuplan' has no attribute 'validat'"):
        gpuplan.validat  # noqa: B018 - asked for on purpose


def test_importing_gpuplan_imports_its_version_and_what_finds_the_rest_alone() -> None:
    code = "import sys, gpuplan; print(*sorted(name for name in sys.modules if name.startswith('gpuplan')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    base = "gpuplan.compiler.base"
    assert done.stdout.split() == ["gpuplan", "gpuplan.compiler", base, f"{base}.faces", f"{base}.version"]


STATE = """
import gc, json, locale, logging, os, signal, sys, threading, warnings

def state():
    return json.loads(json.dumps({
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "garbage": [gc.isenabled(), gc.get_threshold()],
        "hooks": [repr(sys.excepthook), repr(sys.displayhook), repr(sys.meta_path), repr(sys.path_hooks)],
        "limits": [sys.getrecursionlimit(), sys.get_int_max_str_digits(), sys.getswitchinterval()],
        "locale": locale.setlocale(locale.LC_ALL),
        "logging": [logging.root.level, repr(logging.root.handlers), logging.root.manager.disable],
        "path": sys.path,
        "signals": {int(number): repr(signal.getsignal(number)) for number in signal.valid_signals()},
        "streams": [repr(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)],
        "threads": threading.active_count(),
        "warnings": [repr(entry) for entry in warnings.filters],
    }))
"""


def test_a_program_that_uses_gpuplan_finds_its_process_as_it_was(tmp_path: Path) -> None:
    """Otherwise a service would lose its plug-ins of pydantic, its handlers or its environment to us."""
    use = """
before = state()
import gpuplan
for name in gpuplan.__all__:
    getattr(gpuplan, name)
assert gpuplan.validate(sys.argv[1]).is_valid
assert gpuplan.build(sys.argv[1]).tree
after = state()
print(*[name for name in before if before[name] != after[name]])
"""
    program = [sys.executable, "-c", f"{STATE}{use}", str(a_platform(tmp_path))]

    assert subprocess.run(program, capture_output=True, text=True, check=True, env=environment()).stdout == "\n"


def environment() -> dict[str, str]:
    """Ours, without what a command of this process may have told pydantic."""
    return {name: value for name, value in os.environ.items() if name != "PYDANTIC_DISABLE_PLUGINS"}


def with_a_plugin_of_pydantic(folder: Path, *program: str) -> str:
    """What a program says where a package is installed that adds to every pydantic model, and says that it is there."""
    (folder / "talker.py").write_text(
        "class Talker:\n"
        "    def new_schema_validator(self, *_):\n"
        "        print('plug-in')\n"
        "        return None, None, None\n"
        "talker = Talker()\n"
    )
    (folder / "talker-1.dist-info").mkdir()
    (folder / "talker-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: talker\nVersion: 1\n")
    (folder / "talker-1.dist-info/entry_points.txt").write_text("[pydantic]\ntalker = talker:talker\n")
    found = environment() | {"PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, *program], capture_output=True, text=True, check=True, env=found).stdout


def test_plugins_of_pydantic_are_left_to_the_program_that_imports_gpuplan(tmp_path: Path) -> None:
    root = str(a_platform(tmp_path / "platform"))

    assert "plug-in" in with_a_plugin_of_pydantic(
        tmp_path, "-c", "import sys, gpuplan; gpuplan.validate(sys.argv[1])", root
    )


def test_the_command_line_spares_itself_the_search_for_them(tmp_path: Path) -> None:
    root = str(a_platform(tmp_path / "platform"))

    assert "plug-in" not in with_a_plugin_of_pydantic(tmp_path, "-m", "gpuplan.cli", "validate", "-C", root)


def test_a_valid_platform_has_a_plan_and_a_tree(tmp_path: Path) -> None:
    build = gpuplan.build(a_platform(tmp_path))

    assert build.report.is_valid
    assert [plan.cluster.name for plan in build.report.plans] == ["dev"]
    assert "dev/kustomization.yaml" in build.tree
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("overlays", "policies")] == []


def test_a_broken_platform_has_findings_with_places(tmp_path: Path) -> None:
    report = gpuplan.validate(a_broken_platform(tmp_path))

    [error] = [item for item in report.diagnostics if item.severity is gpuplan.Severity.ERROR]
    place = error.finding.at.locate()
    assert (error.code, place.file.path, place.span.start.line) == ("GPU101", "policies/tenant.yaml", 10)
    assert not report.is_valid


def test_trouble_is_raised(tmp_path: Path) -> None:
    with pytest.raises(gpuplan.GpuplanError, match="no cluster found"):
        gpuplan.validate(tmp_path)


def test_folders_may_be_named_in_text(tmp_path: Path) -> None:
    (a_platform(tmp_path) / "crds").mkdir()

    assert gpuplan.validate(str(tmp_path)).is_valid
    assert gpuplan.build(str(tmp_path)).tree == gpuplan.build(tmp_path).tree
    with pytest.raises(gpuplan.GpuplanError, match="there is no CustomResourceDefinition in"):
        gpuplan.build(str(tmp_path), crds=str(tmp_path / "crds"))
