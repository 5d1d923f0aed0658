"""The wall holds: what is planted across it is found, what features hand in is there, and their faces are small."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

import pytest

import gpuplan
from gpuplan import handed_in
from gpuplan.compiler.base.diagnostics import Rule
from gpuplan.compiler.base.faces import imported
from gpuplan.compiler.checks.registry import Check
from gpuplan.compiler.pipeline import judges
from gpuplan.compiler.policy.models import Document
from gpuplan.terminal.options import OUTPUTS
from gpuplan.terminal.schemas import schema

REPOSITORY = Path(__file__).parents[1]
SOURCES = Path(gpuplan.__file__).parent
COMPILER, FEATURES = SOURCES / "compiler", SOURCES / "features"
NAMES = sorted(path.parent.name for path in FEATURES.glob("*/__init__.py"))
EACH_FEATURE = pytest.mark.parametrize("feature", NAMES)

KNOWN = "Features know each other only as listed here"
FACE = "Others see the face of %s alone"
SHRINKS = "What the compiler still has for tracing alone only shrinks"
PLANTED = {
    "compiler/planning/tree.py: from gpuplan.features.packing import pack": "The wall: the compiler knows no feature",
    "compiler/base/handles.py: from gpuplan.terminal.text import pad": "The wall: the compiler knows no feature",
    "terminal/plan.py: from gpuplan.features.changes import compare": "The wall: the compiler knows no feature",
    "compiler/documents/tree.py: from gpuplan.compiler.catalog import load": "The compiler's layers point inwards",
    "compiler/base/values.py: from gpuplan.compiler.base import diagnostics": "What all stand on points inwards, too",
    "compiler/backends/dra.py: from gpuplan.compiler.backends import kai": "Back ends do not know each other",
    "compiler/outtree/disk.py: import click": "The compiler knows no terminal",
    "features/changes/nodes.py: from gpuplan.features.live import drift": KNOWN,
    "features/report/views/page.py: from gpuplan.features.tracing import trace": KNOWN,
    "features/live/dump.py: from gpuplan.features.changes.orders import bad_orders": FACE % "changes",
    "features/files/checking.py: from gpuplan.features.components.kustomize import running": FACE % "components",
    "compiler/planning/tree.py: from gpuplan.compiler.planning.sources import Link": SHRINKS,
    "anything/__init__.py: x = 1": "The wall: the compiler knows no feature",
    "compiler/anything/__init__.py: x = 1": "The compiler's layers point inwards",
    "compiler/base/anything.py: x = 1": "What all stand on points inwards, too",
}
"""What is added to a module, and the contract that finds it."""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("copied")
    ignored = shutil.ignore_patterns("__pycache__", "*.md", "*.yaml", "*.json")
    shutil.copytree(SOURCES, root / "gpuplan", ignore=ignored)
    shutil.copy(REPOSITORY / "pyproject.toml", root)
    return root


def broken(root: Path) -> list[str]:
    """The contracts that do not hold."""
    lint = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"]
    done = subprocess.run(lint, cwd=root, env={"PYTHONPATH": str(root)}, capture_output=True, text=True, check=False)
    assert "Contracts: " in done.stdout, done.stdout + done.stderr
    return [line.partition(" BROKEN")[0] for line in done.stdout.splitlines() if " BROKEN" in line]


def test_all_contracts_hold(copied: Path) -> None:
    assert broken(copied) == []


@pytest.mark.parametrize("plant", PLANTED)
def test_what_is_planted_across_the_wall_is_found(plant: str, copied: Path) -> None:
    name, _, line = plant.partition(": ")
    module = copied / "gpuplan" / name
    before = module.read_text(encoding="utf-8") if module.exists() else None
    module.parent.mkdir(exist_ok=True)
    module.write_text(f"{before or ''}\n{line}\n", encoding="utf-8")
    try:
        found = broken(copied)
    finally:
        if before is not None:
            module.write_text(before, encoding="utf-8")
        elif name.endswith("__init__.py"):
            shutil.rmtree(module.parent)
        else:
            module.unlink()

    assert PLANTED[plant] in found


def test_neither_the_compiler_nor_what_commands_share_says_a_feature_by_name() -> None:
    """Nor in a text that is imported by name, which no contract reads: what features hand in, `handed_in` lists."""
    named = re.compile(r"gpuplan[./]features")
    files = [*COMPILER.rglob("*.py"), *(SOURCES / "terminal").rglob("*.py")]

    assert [path for path in files if named.search(path.read_text(encoding="utf-8"))] == []


def test_what_evaluates_cel_and_what_merges_says_no_gpu_by_name() -> None:
    """Contracts see what the two packages import, and no text in them."""
    named = re.compile(r"nvidia|gpuplan\.dev|\bmig\b", re.IGNORECASE)
    files = [path for name in ("cel", "merging") for path in (COMPILER / "manifests" / name).rglob("*.py")]

    assert files
    assert [path for path in files if named.search(path.read_text(encoding="utf-8"))] == []


IMPORTING = frozenset(
    {
        "cli/main.py",  # what it postpones, and commands
        "compiler/backends/__init__.py",
        "compiler/base/faces.py",
        "compiler/checks/__init__.py",
        "compiler/pipeline/stages.py",
        "compiler/policy/fields.py",
        "terminal/verbs.py",
    }
)
"""The modules that import by name."""


def test_these_modules_and_no_others_import_by_name() -> None:
    by_name = re.compile(r"\b(?:import_module|__import__|resolve_name)\b|sys\.modules\[")
    found = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if by_name.search(path.read_text(encoding="utf-8"))
    }

    assert found == IMPORTING


def test_the_compiler_loads_no_feature_until_it_judges() -> None:
    code = "import sys, gpuplan.compiler.pipeline; print(*[name for name in sys.modules if 'features.' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


# --- What features hand in ---------------------------------------------------------------------------------------


def test_judges_take_what_the_compiler_gives() -> None:
    [plans], [sound], [results], [steps] = (
        [*judges.plan_judges()],
        [*judges.sound_plan_judges()],
        [*judges.result_judges()],
        [*judges.step_judges()],
    )

    assert [list(inspect.signature(judge).parameters) for judge in (plans, sound)] == [["plan"], ["plan"]]
    for judge, protocol in ((results, judges.ResultJudge), (steps, judges.StepJudge)):
        wanted = inspect.signature(protocol.__call__).parameters
        given = inspect.signature(judge).parameters
        assert [(name, one.kind, one.default) for name, one in given.items()] == [
            (name, one.kind, one.default) for name, one in wanted.items() if name != "self"
        ]


def test_rules_checks_and_documents_are_what_they_are_called() -> None:
    assert all(isinstance(rule, Rule) for rules in imported(handed_in.RULES) for rule in rules)
    assert all(isinstance(check, Check) for checks in imported(handed_in.CHECKS) for check in checks)
    assert all(issubclass(kind, Document) for kind in imported(handed_in.DOCUMENTS))


@EACH_FEATURE
def test_each_feature_that_has_rules_hands_them_in(feature: str) -> None:
    assert (f"gpuplan.features.{feature}.rules:RULES" in handed_in.RULES) == (FEATURES / feature / "rules").is_dir()


def test_each_schema_of_a_feature_is_handed_in() -> None:
    shipped = {path.name.removesuffix(".schema.json"): path.parent for path in FEATURES.rglob("*.schema.json")}

    assert shipped.keys() == handed_in.OUTPUTS.keys() <= OUTPUTS.keys()
    assert {name: schema(name)["type"] for name in handed_in.OUTPUTS} == dict.fromkeys(handed_in.OUTPUTS, "object")


# --- Features ----------------------------------------------------------------------------------------------------


def face_of(feature: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The module of each name of a face: as it is found, and as type checkers read it."""
    tree = ast.parse((FEATURES / feature / "__init__.py").read_text(encoding="utf-8"))
    [found] = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    assert isinstance(found, ast.Call)
    homes: Mapping[str, tuple[str, ...]] = ast.literal_eval(found.args[1])
    typed = {
        alias.name: (node.module or "").removeprefix(f"gpuplan.features.{feature}.")
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return {name: home for home, names in homes.items() for name in names}, typed


def has_face(feature: str) -> bool:
    return "face(" in (FEATURES / feature / "__init__.py").read_text(encoding="utf-8")


@EACH_FEATURE
def test_a_feature_has_a_face_or_shows_nothing_and_a_contract_that_says_so(feature: str) -> None:
    tree = ast.parse((FEATURES / feature / "__init__.py").read_text(encoding="utf-8"))
    is_face = has_face(feature) and not any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in tree.body)

    assert is_face or [type(node) for node in tree.body] == [ast.Expr]
    assert f'protected_modules = ["gpuplan.features.{feature}.*"]' in (REPOSITORY / "pyproject.toml").read_text()


FACES = pytest.mark.parametrize("feature", [name for name in NAMES if has_face(name)])


@FACES
def test_a_face_is_told_to_type_checkers_as_it_is(feature: str) -> None:
    found, typed = face_of(feature)

    assert found == typed
    assert all(hasattr(import_module(f"gpuplan.features.{feature}"), name) for name in found)


@FACES
def test_a_face_has_at_most_five_functions_beside_types_and_views(feature: str) -> None:
    found, _ = face_of(feature)
    package = import_module(f"gpuplan.features.{feature}")
    functions = [name for name, home in found.items() if is_function(getattr(package, name)) and "views" not in home]

    assert len(functions) <= 5, functions


def is_function(value: object) -> bool:
    return callable(value) and not isinstance(value, type | Check)


def stages() -> Iterator[Path]:
    """The modules of features that are neither commands nor views."""
    for path in FEATURES.rglob("*.py"):
        if not {"commands", "views"} & {*path.relative_to(FEATURES).parts}:
            yield path


SHOWING = frozenset(("click", "wcwidth", "gpuplan.terminal", "commands", "views"))


def imports_of(path: Path) -> Iterator[str]:
    """What a module imports, by its whole name, and by the names of packages on the way."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)


def test_stages_of_features_know_no_terminal() -> None:
    own = {FEATURES / name / "__init__.py" for name in NAMES}  # faces, which have views as well
    shown = {
        name for feature in NAMES if has_face(feature) for name, home in face_of(feature)[0].items() if "views" in home
    }
    assert shown
    for path in (path for path in stages() if path not in own):
        for name in imports_of(path):
            parts, last = name.split("."), name.rpartition(".")[2]
            is_showing = parts[0] in SHOWING or ".".join(parts[:2]) in SHOWING or bool({*parts[:-1], last} & SHOWING)
            assert not is_showing, (path, name)
            assert not (name.startswith("gpuplan.features.") and last in shown), (path, name)
