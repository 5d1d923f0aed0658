"""The script that freezes what gpuplan says and builds, and compares another checkout with it."""

from __future__ import annotations

import importlib.util
import json
import socket
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gpuplan.compiler.backends import namespaces
from gpuplan.compiler.planning import context
from tests.cli.platforms import a_broken_platform, a_platform

pytestmark = pytest.mark.no_cover
REPOSITORY = Path(__file__).resolve().parents[2]
VERBS = {"build", "check", "diff", "drift", "import", "pack", "report", "retain", "show", "trace", "validate"}
NAMESPACE = "out/dev/namespaces/research/namespace-research.yaml"


@pytest.fixture(scope="module")
def freeze() -> ModuleType:
    spec = importlib.util.spec_from_file_location("freeze", REPOSITORY / "tools/freeze.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def frozen(freeze: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(freeze, tmp_path_factory.mktemp("frozen"))


def write(freeze: ModuleType, home: Path) -> Path:
    """Freeze a platform that is right, and one that names a pool that does not exist."""
    right, wrong = a_platform(home / "right"), a_broken_platform(home / "wrong")
    file = home / "frozen.json"
    freeze.write(file, [freeze.platform_in(wrong, "wrong"), freeze.platform_in(right, "right")])
    return file


def texts(file: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in file.with_name("frozen-texts").iterdir()}


# --- What is written -----------------------------------------------------------------------------------------------


def test_two_folders_make_the_same_bytes(freeze: ModuleType, frozen: Path, tmp_path: Path) -> None:
    again = write(freeze, tmp_path)

    assert again.read_bytes() == frozen.read_bytes()
    assert texts(again) == texts(frozen)


def test_each_command_and_each_file_is_an_output(frozen: Path) -> None:
    found = json.loads(frozen.read_text(encoding="utf-8"))

    assert [*found] == ["right", "wrong"]
    verbs = {command.split()[2] for command in found["right"]["commands"]}
    assert verbs == {
        *["build", "validate", "show", "report", "diff", "retain", "pack", "drift", "import", "check", "trace"]
    }
    assert {*found["right"]["commands"]} < {*found["right"]["outputs"]}
    assert NAMESPACE in found["right"]["outputs"]
    assert {*found["wrong"]["commands"]} == {*found["wrong"]["outputs"]}  # nothing is built beside an error


def test_nothing_of_the_machine_is_in_it(frozen: Path) -> None:
    for text in (frozen.read_text(encoding="utf-8"), *texts(frozen).values()):
        assert str(Path.home()) not in text
        assert str(REPOSITORY) not in text
        assert "/tmp" not in text
        assert socket.gethostname() not in text.split()


def test_slow_packing_is_left_out(freeze: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freeze, "PATIENCE_S", -1)

    found = json.loads(write(freeze, tmp_path).read_text(encoding="utf-8"))["right"]

    assert found["slow"] == ["-C before pack -c dev -o json"]
    assert found["slow"][0] not in {*found["commands"], *found["outputs"]}


# --- What is compared ----------------------------------------------------------------------------------------------


def test_nothing_differs_from_the_same_checkout(
    freeze: ModuleType, frozen: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert freeze.main(["compare", str(frozen)]) == 0
    assert capsys.readouterr().out == "nothing differs\n"


def test_a_word_of_a_finding_differs(
    freeze: ModuleType, frozen: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(context, "misspelling", lambda name, names: None)

    assert freeze.main(["compare", str(frozen)]) == 1
    shown = capsys.readouterr().out
    assert "wrong: -C before validate --kustomize off -o json\n--- frozen\n+++ now\n" in shown
    renamed = "name `research`, to which nothing refers, if it was renamed; or add a Pool named `reserch`"
    assert f'\n-      "help": "write `research`"\n+      "help": "{renamed}"\n' in shown
    assert "right: " not in shown


def test_a_field_of_a_back_end_differs(freeze: ModuleType, frozen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = namespaces._namespace

    def with_another_label(*arguments: Any) -> dict[str, Any]:
        body = build(*arguments)
        body["metadata"]["labels"]["planted"] = "true"
        return body

    monkeypatch.setattr(namespaces, "_namespace", with_another_label)
    found = {(item.platform, item.output): item.lines for item in freeze.compare(frozen)}

    lines = found["right", NAMESPACE]
    assert [line for line in lines[2:] if line.startswith(("-", "+"))] == ['+    planted: "true"']
    assert ("right", "-C before show -o json") not in found


def test_a_file_that_is_gone_differs(freeze: ModuleType, frozen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "render", lambda plan: ())

    [gone] = [item for item in freeze.compare(frozen, "right") if item.output == NAMESPACE]

    assert gone.lines[:2] == ("--- frozen", "+++ nothing")


# --- Platforms -----------------------------------------------------------------------------------------------------


def test_every_repository_of_the_tests_is_frozen(freeze: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freeze, "DRAWN", 0)
    names = {platform.name for platform in freeze.platforms()}

    tests = REPOSITORY / "tests"
    clusters = [
        path
        for top in ("repositories", "seeds")
        for path in (tests / "platforms" / top).rglob("overlays/*/cluster.yaml")
    ]
    assert {path.parents[2].relative_to(tests / "platforms").as_posix() for path in clusters} <= names
    assert {"example", "acting/plain", "tracing/kueue"} <= names


def test_drawn_platforms_are_the_same_each_time(freeze: ModuleType) -> None:
    first, second = [*freeze.drawn(10)], [*freeze.drawn(10)]

    assert first == second
    assert all(platform.before != platform.after for platform in first)
