"""What a Component is built from is copied: files alone, of bounded size, and links as kustomize follows them."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.pipeline import Report, build, validate
from gpuplan.features.components import kustomize, needs
from gpuplan.features.components.kustomize import Sources, laid_out
from gpuplan.features.components.needs import Disk
from gpuplan.features.components.printing import print_stream
from tests.features.components.addresses import KUSTOMIZATION
from tests.features.components.test_network import CLUSTER, HOME, NOTES, codes, component, messages, write
from tests.kustomizing import need


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "overlays/dev/cluster.yaml", CLUSTER)
    return tmp_path


def timed(root: Path, kustomize: str = "") -> tuple[Report, float]:
    """With the modules loaded, so that it is the platform that takes the time."""
    validate(root, kustomize="off")
    start = time.monotonic()
    return validate(root, kustomize=kustomize), time.monotonic() - start


def a_pipe(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as here:
        folder = os.open(path.parent, os.O_RDONLY)
        here.bind(f"/proc/self/fd/{folder}/{path.name}")
        os.close(folder)


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_large_file(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(2**33)


# --- What is no file ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (a_pipe, "is a pipe, not a file"),
        (a_socket, "is a socket, not a file"),
        (a_device, "is a device, not a file"),
        (a_large_file, "is larger than 8 MiB"),
    ],
)
@pytest.mark.parametrize(
    "rest",
    [
        "configMapGenerator:\n  - {name: a, files: [it]}\n",
        "secretGenerator:\n  - {name: a, env: it}\n",
        "resources: [it]\n",
        "transformers: [it]\n",
        "transformers:\n  - |\n    {apiVersion: builtin, kind: PatchTransformer, metadata: {name: a}, path: it}\n",
        "patches:\n  - path: it\n",
        "openapi: {path: it}\n",
    ],
)
def test_what_is_no_file_ends_the_build_at_once(root: Path, rest: str, make: Callable[[Path], None], what: str) -> None:
    need()
    home = component(root, rest)
    make(home / "it")
    report, seconds = timed(root)
    assert codes(report) == ["GPU648"]
    assert f"`it` {what}" in messages(report)
    assert seconds < 2


@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml", "Kustomization"])
def test_a_pipe_in_the_place_of_a_kustomization_is_found(root: Path, name: str) -> None:
    need()
    component(root, "resources:\n  - ../../../../shared\n")
    a_pipe(root / "shared" / name)
    report, seconds = timed(root)
    [found] = report.diagnostics
    assert (found.code, found.finding.message) == ("GPU648", f"`shared/{name}` is a pipe, not a file")
    assert found.finding.at.locate().file.path == f"{HOME}/kustomization.yaml"
    assert seconds < 2


def test_what_nothing_names_is_no_matter(root: Path) -> None:
    need()
    home = component(root, "resources: [notes.yaml]\n", notes=NOTES)
    a_pipe(home / "unused")
    a_pipe(root / "shared/unused")
    assert codes(validate(root)) == []


def test_of_files_that_are_missing_so_many_are_told_and_no_more(root: Path) -> None:
    need()
    component(root, f"resources: [{', '.join(f'f{number}' for number in range(10_000))}]\n")
    report, seconds = timed(root)
    assert len(report.diagnostics) == needs.MOST_OBSTACLES
    assert seconds < 10


@pytest.mark.parametrize(("way", "label"), [("shared", "did you mean `settings.yaml`"), ("../beside", "no such file")])
def test_names_are_guessed_from_what_is_in_the_repository_alone(tmp_path: Path, way: str, label: str) -> None:
    need()
    root = tmp_path / "root"
    write(root / "overlays/dev/cluster.yaml", CLUSTER)
    write(root / way / "settings.yaml", NOTES)
    component(root, f"resources: [../../../../{way}/setings.yaml]\n")
    [found] = validate(root).diagnostics
    assert found.finding.label.startswith(label)


def test_all_files_together_are_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "MAX_TOTAL", 1000)
    home = component(root, "configMapGenerator:\n  - {name: a, files: [one, two]}\n")
    write(home / "one", "1" * 400)
    write(home / "two", "2" * 700)
    assert "`two` is one file too many" in messages(validate(root))


def test_a_stream_ends_at_once_as_well(root: Path) -> None:
    need()
    home = component(root, "configMapGenerator:\n  - {name: a, files: [it]}\n")
    write(home / "it", "a")
    built = build(root)
    (home / "it").unlink()
    a_pipe(home / "it")
    with pytest.raises(GpuplanError) as raised:
        print_stream(built, root=root)
    assert raised.value.message.startswith("`out/dev/workloads/` cannot be built: `it` is a pipe, not a file")


# --- Ways --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["/etc/hosts", "../" * 40 + "etc"])
def test_a_way_from_the_top_of_the_machine_is_refused(root: Path, way: str) -> None:
    need()
    component(root, f"resources:\n  - {way}\n")
    report = validate(root)
    assert codes(report) == ["GPU648"]
    assert f"`{way}` is no way from its folder" in messages(report)


def test_a_link_to_a_file_of_the_folder_is_followed(root: Path) -> None:
    need()
    home = component(root, "configMapGenerator:\n  - {name: a, namespace: b, files: [link]}\n")
    write(home / "it", "text of it")
    (home / "link").symlink_to("it")
    assert b"text of it" in print_stream(build(root), root=root)


def test_a_link_out_of_the_folder_is_refused_by_kustomize(root: Path) -> None:
    need()
    home = component(root, "configMapGenerator:\n  - {name: a, files: [link]}\n")
    write(root / "elsewhere", "a")
    (home / "link").symlink_to(root / "elsewhere")
    report = validate(root)
    assert codes(report) == ["GPU681"]
    assert "is not in or below" in messages(report)


def test_a_base_behind_links_is_built_from_where_it_is(root: Path) -> None:
    """Its `..` counts from the folder behind the link."""
    need()
    component(root, "resources: [../../../../link]\n")
    (root / "link").symlink_to("second")
    (root / "second").symlink_to(root / "deep/er/base", target_is_directory=True)
    write(root / "deep/er/base/kustomization.yaml", KUSTOMIZATION + "resources: [../other]\n")
    write(root / "deep/er/other/kustomization.yaml", KUSTOMIZATION + "resources: [notes.yaml]\n")
    write(root / "deep/er/other/notes.yaml", NOTES)
    assert b"name: notes" in print_stream(build(root), root=root)
    assert codes(validate(root)) == []


def test_a_base_beside_the_repository_is_built(tmp_path: Path) -> None:
    need()
    root = tmp_path / "mono/platform"
    write(root / "overlays/dev/cluster.yaml", CLUSTER)
    component(root, "resources: [../../../../../shared]\n")
    write(tmp_path / "mono/shared/kustomization.yaml", KUSTOMIZATION + "resources: [notes.yaml]\n")
    write(tmp_path / "mono/shared/notes.yaml", NOTES.replace("a: b", "a: 1"))
    assert codes(validate(root)) == ["GPU683"]


def test_a_link_to_itself_does_not_exist(root: Path) -> None:
    home = component(root, "configMapGenerator:\n  - {name: a, files: [link]}\n")
    (home / "link").symlink_to("link")
    assert codes(validate(root)) == ["GPU681"]


def test_links_to_links_are_followed_in_linear_time(tmp_path: Path) -> None:
    (tmp_path / "l0").mkdir()
    for index in range(1, 35):
        (tmp_path / f"l{index}").symlink_to(f"l{index - 1}/../l{index - 1}/../l{index - 1}")
    start = time.monotonic()
    assert Disk().resolve(str(tmp_path / "l34"))[0] == str((tmp_path / "l0").resolve())
    assert time.monotonic() - start < 1


def test_two_kustomizations_in_one_folder_are_refused_as_ever(root: Path) -> None:
    need()
    component(root, "resources: [../../../../shared]\n")
    for name in ("kustomization.yaml", "Kustomization"):
        write(root / "shared" / name, KUSTOMIZATION + "resources: [notes.yaml]\n")
    write(root / "shared/notes.yaml", NOTES)
    assert "Found multiple kustomization files" in messages(validate(root))


def test_an_unreadable_base_is_said_where_it_is(root: Path) -> None:
    component(root, "resources: [../../../../shared]\n")
    write(root / "shared/kustomization.yaml", "resources: [\n")
    report = validate(root)
    assert [item.finding.at.locate().file.path for item in report.diagnostics] == ["shared/kustomization.yaml"]


def test_of_a_key_that_is_there_twice_kustomize_takes_the_last(root: Path) -> None:
    need()
    component(root, "resources: [../../../../shared]\n")
    twice = "resources: [notes.yaml]\nresources: [more.yaml]\n"
    write(root / "shared/kustomization.yaml", KUSTOMIZATION + twice)
    write(root / "shared/notes.yaml", NOTES)
    write(root / "shared/more.yaml", NOTES.replace("notes", "more"))
    assert b"name: more" in print_stream(build(root), root=root)
    write(
        root / "shared/kustomization.yaml", KUSTOMIZATION + twice.replace("more.yaml", "http://127.0.0.1:9/more.yaml")
    )
    assert codes(validate(root)) == ["GPU644"]


# --- The copy ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["../../x", "../" * 50 + "x", "/x", "a/../../../../../x", "./x", "..", "/"])
@pytest.mark.parametrize("root", ["/", "/a", "/a/b/c"])
def test_no_path_leads_out_of_the_copy(root: str, path: str) -> None:
    with laid_out(Path(root), {}, Sources()) as scratch:
        assert Path(os.path.normpath(scratch.path(path))).is_relative_to(scratch.top)


def test_nothing_is_written_outside_of_the_copy(tmp_path: Path) -> None:
    far = "../" * 60
    sources = Sources(
        {f"{far}tmp/far": b"1", "/r/a": b"copied", "/r/b": b"b"},
        {"/r/link": "/etc", f"{far}l": f"{far}etc/passwd"},
        frozenset((f"{far}f",)),
    )
    generated = {"out/x": b"2", f"{far}g": b"3", "a": b"generated"}
    with laid_out(Path("/r"), generated, sources) as scratch:
        place = scratch.top.parent
        inside = {str(path.relative_to(scratch.top)) for path in scratch.top.rglob("*")}
        assert {path.name for path in place.iterdir()} == {"tree", "home", "bundles"}
        assert inside == {"r", "r/out", "r/out/x", "r/a", "r/b", "r/link", "g", "l", "f", "tmp", "tmp/far"}
        assert (scratch.root / "a").read_bytes() == b"generated"
        for link in (scratch.root / "link", scratch.top / "l"):
            assert Path(os.path.realpath(link)).is_relative_to(scratch.top)
    assert not place.exists()


def test_what_is_in_the_way_of_a_copy_stays(tmp_path: Path) -> None:
    sources = Sources({"/r/out/x/below": b"a", "/r/out": b"b"}, {"/r/out/x": "/etc"}, frozenset(("/r/out/x/f",)))
    with laid_out(Path("/r"), {"out/x": b"generated"}, sources) as scratch:
        assert (scratch.root / "out/x").read_bytes() == b"generated"


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    from gpuplan.features.components.kustomize import scratch

    (tmp_path / "outside").mkdir()
    (tmp_path / "top").mkdir()
    (tmp_path / "top/link").symlink_to("../outside")
    scratch._write(tmp_path / "top", {"link/a": b"a"})
    assert list((tmp_path / "outside").iterdir()) == []


# --- Bounds of a run ---------------------------------------------------------------------------------------------


def script(folder: Path, text: str) -> str:
    write(folder / "kustomize", f"#!/bin/sh\n{text}\n")
    (folder / "kustomize").chmod(0o755)
    return str(folder / "kustomize")


@pytest.fixture
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kustomize, "LONGEST_BUILD", 0.5)


@pytest.mark.usefixtures("_hurry")
def test_a_build_has_seconds_and_what_it_started_ends_with_it(root: Path, tmp_path: Path) -> None:
    program = script(tmp_path / "bin", f"sleep 60 &\necho $! > {tmp_path}/child\nsleep 60")
    component(root, "resources: [notes.yaml]\n", notes=NOTES)
    report, seconds = timed(root, program)
    [found] = report.diagnostics
    assert found.code == "GPU681"
    assert found.finding.notes == ("kustomize says: nothing within 0.5 seconds",)
    assert found.finding.help == "make the Component smaller, or look with `kustomize build` what takes so long"
    assert seconds < 5
    child = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    assert not child.exists() or child.read_text().split()[2] == "Z"


@pytest.mark.usefixtures("_hurry")
def test_after_one_that_took_too_long_no_more_are_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    program = script(tmp_path / "bin", "sleep 60")
    first, *others = kustomize.build((program, "build"), [tmp_path] * 20, tmp_path)
    assert first == kustomize.Refusal("nothing within 0.5 seconds", is_late=True)
    assert others == [None] * 19


def test_what_is_printed_is_bounded(root: Path, tmp_path: Path) -> None:
    component(root, "resources: [notes.yaml]\n", notes=NOTES)
    report, seconds = timed(root, script(tmp_path / "bin", "cat /dev/zero"))
    assert "kustomize says: more than 16 MiB" in messages(report)
    assert seconds < 10


def test_what_is_complained_is_bounded(root: Path, tmp_path: Path) -> None:
    component(root, "resources: [notes.yaml]\n", notes=NOTES)
    program = script(tmp_path / "bin", "head -c 30000000 /dev/zero | tr '\\0' x >&2; exit 1")
    report, seconds = timed(root, program)
    assert codes(report) == ["GPU681"]
    assert seconds < 10


def test_a_program_named_from_here_is_found(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "bin", "exit 3")
    monkeypatch.chdir(tmp_path)
    component(root, "resources: [notes.yaml]\n", notes=NOTES)
    assert "kustomize says: nothing, and ends with 3" in messages(validate(root, kustomize="bin/kustomize"))
