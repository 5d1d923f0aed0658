"""Write down all that gpuplan says and builds of many platforms, or compare this checkout with that, to the byte.

python tools/freeze.py write build/frozen.json
python tools/freeze.py compare build/frozen.json
"""

from __future__ import annotations

import argparse
import difflib
import gc
import json
import os
import random
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # what is installed may be of another checkout

import yaml  # noqa: E402

import gpuplan  # noqa: E402
from tests.cli.runs import run  # noqa: E402

DRAWN: Final = 200
SHOWN: Final = 40
"""The lines of a difference that are printed."""
PATIENCE_S: Final = 2
"""A packing that takes longer is left out: its solver has a limit of time, after which its answer is another one."""

BEFORE: Final = "before"
AFTER: Final = "after"
OF_ALL: Final = (
    f"-C {BEFORE} build --kustomize off",
    f"-C {BEFORE} validate --kustomize off -o json",
    f"-C {BEFORE} show -o json",
    f"-C {BEFORE} report",
    f"-C {AFTER} diff --against {BEFORE} -o json",
    f"-C {AFTER} retain --against {BEFORE}",
)
"""The commands that are run for each platform before others."""

Texts = Mapping[str, str]
"""Texts by path or by command."""


class Platform(NamedTuple):
    """The policies of a platform by path, and those of a changed one."""

    name: str
    before: Texts
    after: Texts


class Frozen(NamedTuple):
    """The files and commands of a platform, and what came of them: a text by command, and by path of each file built.

    ``slow`` are commands that were left out.
    """

    inputs: Texts
    commands: Sequence[str]
    slow: Sequence[str]
    outputs: Texts


class Difference(NamedTuple):
    """An output of a platform that is another one; ``lines`` are a unified diff."""

    platform: str
    output: str
    lines: tuple[str, ...]


# --- Freeze and compare --------------------------------------------------------------------------------------------


def write(file: Path, platforms: Iterable[Platform]) -> Mapping[str, Frozen]:
    """Write the digests of all platforms, and each text under its digest into the folder beside the file."""
    folder = _texts_of(file)
    folder.mkdir(parents=True, exist_ok=True)
    frozen = {platform.name: _store(folder, freeze(platform)) for platform in platforms}
    listed = {name: item._asdict() for name, item in sorted(frozen.items())}
    file.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8", newline="")
    return frozen


def compare(file: Path, only: str = "") -> Iterator[Difference]:
    """Find what this checkout says or builds otherwise of the files in the folder beside ``file``."""
    folder = _texts_of(file)
    for name, item in json.loads(file.read_text(encoding="utf-8")).items():
        if only not in name:
            continue
        frozen = Frozen(**item)
        outputs, _ = answer(_look_up(folder, frozen.inputs), frozen.commands)
        for output in sorted(frozen.outputs.keys() | outputs.keys()):
            digest, text = frozen.outputs.get(output), outputs.get(output)
            if digest is None or text is None or digest != _digest(text):
                earlier = None if digest is None else _look_up(folder, {output: digest})[output]
                yield Difference(name, output, _diff(earlier, text))


def _diff(earlier: str | None, later: str | None) -> tuple[str, ...]:
    """Compare two texts, of which one may not exist."""
    before, after = ([] if text is None else text.split("\n") for text in (earlier, later))
    names = ("nothing" if earlier is None else "frozen", "nothing" if later is None else "now")
    return tuple(islice(difflib.unified_diff(before, after, *names, lineterm=""), SHOWN))


def freeze(platform: Platform) -> Frozen:
    dumps, asked = _questions(platform)
    inputs = {**_below(BEFORE, platform.before), **_below(AFTER, platform.after), **dumps}
    commands = (*OF_ALL, *asked)
    outputs, slow = answer(inputs, commands)
    kept = {name: text for name, text in outputs.items() if name not in slow}
    return Frozen(inputs, tuple(command for command in commands if command not in slow), slow, kept)


def answer(inputs: Texts, commands: Sequence[str]) -> tuple[Texts, Sequence[str]]:
    """Run commands in a new folder: what each prints, with the files below `out/`, and those that took too long."""
    outputs: dict[str, str] = {}
    slow = []
    with TemporaryDirectory() as folder, patch.dict(os.environ, _alone(folder), clear=True):
        home = Path(folder)
        _put(home, inputs)
        for command in commands:
            start = time.process_time()
            done = run(*command.split(), cwd=home)
            outputs[command] = f"{done.out}--- stderr\n{done.err}--- exit code {done.code}\n"
            if " pack " in command and time.process_time() - start > PATIENCE_S:
                slow.append(command)
        return outputs | _read(home / BEFORE, "out"), slow


def _store(folder: Path, frozen: Frozen) -> Frozen:
    """Write all texts into the folder, and put their digests in place of them."""
    for text in (*frozen.inputs.values(), *frozen.outputs.values()):
        (folder / _digest(text)).write_bytes(text.encode())
    inputs, outputs = (
        {name: _digest(text) for name, text in texts.items()} for texts in (frozen.inputs, frozen.outputs)
    )
    return frozen._replace(inputs=inputs, outputs=outputs)


def _look_up(folder: Path, digests: Texts) -> Texts:
    return {name: (folder / digest).read_bytes().decode() for name, digest in digests.items()}


def _texts_of(file: Path) -> Path:
    return file.with_name(f"{file.stem}-texts")


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _alone(folder: str) -> dict[str, str]:
    """Variables with which no program is found, and no repository around the folder."""
    return {"COLUMNS": "100", "PATH": "", "GIT_CEILING_DIRECTORIES": folder}


def _put(home: Path, files: Texts) -> None:
    for path, text in files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_bytes(text.encode())


def _read(root: Path, *tops: str) -> dict[str, str]:
    """The texts of some folders by path, in order."""
    files = sorted(path for top in tops for path in (root / top).rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes().decode() for path in files}


def _below(folder: str, files: Texts) -> dict[str, str]:
    return {f"{folder}/{path}": text for path, text in files.items()}


# --- Platforms -----------------------------------------------------------------------------------------------------


def platforms() -> Iterator[Platform]:
    """The example, all that tests have as folders or files, and drawn ones."""
    yield platform_in(ROOT, "example")
    for overlays in sorted(
        path for top in ("repositories", "seeds") for path in ROOT.glob(f"tests/platforms/{top}/**/overlays")
    ):
        yield platform_in(overlays.parent, overlays.parent.relative_to(ROOT / "tests/platforms").as_posix())
    for path in sorted(ROOT.glob("tests/laws/*/platforms/*.yaml")):
        yield _with_less(f"{path.parts[-3]}/{path.stem}", {"overlays/test/all.yaml": path.read_bytes().decode()})
    yield from drawn(DRAWN)


def platform_in(root: Path, name: str) -> Platform:
    return _with_less(name, _read(root, "overlays", "policies"))


def drawn(number: int) -> Iterator[Platform]:
    """As many drawn platforms, each with a drawn edit where it can be edited as a whole."""
    from tests.features.live.platforms import platforms as draw
    from tests.laws.orders.edits import EDITS, edited

    for found in draw(number):
        name, rng = f"drawn/{found.name}", random.Random(found.name)  # noqa: S311 - the same ones each time
        if found.platform is None:
            yield _with_less(name, found.files)
        else:
            tried = (edited(rng, found.platform, rng.choice(EDITS)) for _ in count())
            yield Platform(name, found.files, next(after.files() for after in tried if after is not None))


_LESS: Final = tuple(re.compile(rf"(?<=\b{word}: )[1-9][0-9]*\b") for word in ("guaranteed", "replicas", "count"))


def _with_less(name: str, before: Texts) -> Platform:
    """The first guarantee is one less in the changed one, or the first count where nothing is guaranteed."""
    for pattern in _LESS:
        for path, text in before.items():
            if pattern.search(text):
                less = pattern.sub(lambda found: str(int(found[0]) - 1), text, count=1)
                return Platform(name, before, {**before, path: less})
    return Platform(name, before, before)


# --- What they are asked -------------------------------------------------------------------------------------------


def _questions(platform: Platform) -> tuple[Texts, list[str]]:
    """Dumps of the clusters, and the commands that depend on what there is."""
    from tests.features.live.dumps import nodes, synced

    with TemporaryDirectory() as folder:
        _put(Path(folder), platform.before)
        built = gpuplan.build(folder, kustomize="off")
    rng = random.Random(platform.name)  # noqa: S311 - the same ones each time
    commands = [f"pack -c {name} -o json" for name in built.report.clusters]
    dumps = {}
    for plan in built.report.plans if built.tree else ():
        name, bodies = plan.cluster.name, synced(plan)
        commands.append(f"trace -c {name} {_handle(rng.choice(bodies))} -o json")
        commands += [
            f"drift {name}.json -c {name} --kustomize off -o json",
            f"import {name}.json -c copy --dry-run",
            f"check {name}.json -o json",
        ]
        dumps[f"{name}.json"] = _dump([*bodies, *nodes(plan)])
    for path in rng.sample(sorted(built.tree), min(2, len(built.tree))):
        commands.append(f"trace out/{path} -o json")
    commands += [f"trace {line} -o json" for line in _lines(rng, platform.before)]
    return dumps, [f"-C {BEFORE} {command}" for command in commands]


def _lines(rng: random.Random, policies: Texts) -> list[str]:
    """A line of the policies and a document."""
    texts = {path: text for path, text in policies.items() if "gpuplan.dev/v1" in text}
    places = [f"{path}:{number + 1}" for path, text in texts.items() for number in range(text.count("\n"))]
    documents = [document for text in texts.values() for document in yaml.safe_load_all(text)]
    return [rng.choice(places), _handle(rng.choice(documents))]


def _handle(body: Mapping[str, Any]) -> str:
    """An object as `trace` takes it."""
    metadata = body["metadata"]
    return "/".join((body["kind"], *filter(None, (metadata.get("namespace"), metadata["name"]))))


def _dump(bodies: list[dict[str, Any]]) -> str:
    """As `kubectl get -o json` prints them: of ten objects one is gone, and two have another last value."""
    for body in (*bodies[3::10], *bodies[6::10]):
        _change(body)
    del bodies[9::10]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies}, indent=1)


def _change(body: Any) -> None:  # noqa: ANN401 - whatever JSON has
    """The last of the values in an object is another one."""
    key = [*body][-1] if isinstance(body, dict) else len(body) - 1
    match body[key]:
        case dict() | list() if body[key]:
            _change(body[key])
        case bool() as value:
            body[key] = not value
        case int() as value:
            body[key] = value + 1
        case str() as value if value.isdecimal():
            body[key] = str(int(value) + 1)
        case value:
            body[key] = f"{value}-other"


# --- Command line --------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", metavar="WORD", help="platforms whose name has this, such as `kueue`")
    options = parser.parse_args(arguments)
    gc.set_threshold(200_000)  # looking for garbage more often takes a tenth of the time
    if options.verb == "write":
        frozen = write(options.file, (platform for platform in platforms() if options.only in platform.name))
        _print(f"{len(frozen)} platforms, {sum(len(item.outputs) for item in frozen.values())} outputs")
        return 0
    return 1 if report(compare(options.file, options.only)) else 0


def report(differences: Iterable[Difference]) -> int:
    """Print the differences; how many there are. Lines that were shown for another output are not shown again."""
    shown: set[tuple[str, ...]] = set()
    number = 0
    for number, (platform, output, lines) in enumerate(differences, 1):  # noqa: B007 - the last one
        _print(f"{platform}: {output}", *(() if lines[2:] in shown else lines))
        shown.add(lines[2:])
    _print(f"{number} outputs differ" if number else "nothing differs")
    return number


def _print(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)  # noqa: T201 - a script


if __name__ == "__main__":
    sys.exit(main())
