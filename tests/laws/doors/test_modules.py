"""Only the modules of the table reach outside of the process, and its page says so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pytest

from tests.cli.runs import REPOSITORY
from tests.every import every_row
from tests.laws.doors.observing import doors
from tests.laws.doors.scanning import modules, uses

PLANTS = {
    "run": ("program", "import subprocess\nsubprocess.run(['true'])\n"),
    "run-from": ("program", "def f():\n    from subprocess import Popen\n    Popen(['true'])\n"),
    "system": ("program", "import os\nos.system('true')\n"),
    "exec": ("program", "from os import execv\nexecv('/bin/true', ['true'])\n"),
    "spawn": ("program", "import os\nos.posix_spawn('/bin/true', ['true'], {})\n"),
    "open-to-write": ("write", "open('x', 'w').close()\n"),
    "open-to-append": ("write", "open('x', mode='ab').close()\n"),
    "open-somehow": ("write", "def f(mode):\n    return open('x', mode)\n"),
    "open-a-path": ("write", "from pathlib import Path\nPath('x').open('x').close()\n"),
    "write-text": ("write", "from pathlib import Path\nPath('x').write_text('')\n"),
    "make-a-folder": ("write", "import os\nos.makedirs('x')\n"),
    "remove": ("write", "from pathlib import Path\nPath('x').unlink()\n"),
    "replace": ("write", "import os\nos.replace('x', 'y')\n"),
    "copy": ("write", "import shutil\nshutil.copyfile('x', 'y')\n"),
    "temporary": ("write", "from tempfile import mkstemp\n"),
    "flags": ("write", "import os\nos.open('x', os.O_RDWR)\n"),
    "socket": ("network", "import socket\nsocket.create_connection(('127.0.0.1', 1))\n"),
    "http": ("network", "from urllib.request import urlopen\n"),
    "other-http": ("network", "import requests\n"),
    "validator": ("schema", "from jsonschema_rs import Draft202012Validator\nDraft202012Validator({})\n"),
    "other-validator": ("schema", "import kubernetes_validate\n"),
    "evaluate": ("code", "eval('1')\n"),
    "pickle": ("code", "import pickle\n"),
}
HARMLESS = {
    "read": "open('x').close()\nopen('x', 'rb').close()\n",
    "read-a-path": "from pathlib import Path\nPath('x').read_text()\nPath('x').open('rb').close()\n",
    "replace-in-a-text": "'x'.replace('x', 'y')\n",
    "find-a-program": "import shutil\nshutil.which('git')\n",
    "a-type": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from subprocess import Popen\n",
    "an-address": "from urllib.parse import quote\n",
    "nowhere": "import os\nopen(os.devnull, 'w').close()\n",
}
SAMPLES = {".".join(name.split(".")[1:3]): (name, text) for name, text in modules() if "." in name}
"""A module of each package."""


def allowed() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for door in doors():
        found[door.kind].update(door.modules)
    return found


def found_in(sources: Sequence[tuple[str, str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for module, text in sources:
        for use in uses(module, text):
            found[use.kind].add(use.module)
    return found


def test_the_modules_of_the_table_and_no_others_reach_outside() -> None:
    assert found_in([*modules()]) == allowed()


@pytest.mark.parametrize("plant", PLANTS)
def test_what_is_planted_in_any_package_is_found(plant: str) -> None:
    @every_row(SAMPLES.values(), lambda module, _: module)
    def finds_the_plant(module: str, text: str) -> None:
        kind, code = PLANTS[plant]
        assert module in found_in([(module, f"{text}\n{code}")])[kind]

    finds_the_plant()


@pytest.mark.parametrize("code", HARMLESS.values(), ids=HARMLESS)
def test_what_stays_inside_is_no_use(code: str) -> None:
    assert found_in([("gpuplan.x", code)]) == {}


def test_the_page_on_security_shows_the_table() -> None:
    page = (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8")

    rows = page.partition("<!-- doors -->")[2].partition("<!-- /doors -->")[0].splitlines()

    assert [row.split(" | ")[0].removeprefix("| ") for row in rows if row.startswith("| ")][1:] == [
        door.what for door in doors()
    ]
