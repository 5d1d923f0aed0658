"""YAML that PyYAML, the core schema of YAML 1.2 and Go's parsers all read as the data that was written."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import shutil
import subprocess
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import pytest
import yaml
from hypothesis import given, strategies as st

from gpuplan.compiler.manifests import to_yaml
from tests.every import every

# fmt: off
NASTY = [
    "", " ", "  ", "\t", "\n", "\n\n", " a", "a ", "\ta", "a\t", "a  b", "a\n b", "a\nb", "a\nb\n", "a\n\nb\n\n\n",
    " a\nb\n", "  a\n b\n", "\ta\nb\n", "a\n\tb\n", "a \nb\n", "a\nb ", "\na\n", "\n a\n", "a\n\n", "a\n ",
    "a\r\nb\r\n", "y", "Y", "n", "N", "yes", "No", "on", "OFF", "true", "False", "null", "Null", "~", "none", "NaN",
    "inf", "0", "1", "-1", "+1", "012", "0o7", "0x1f", "0b1", "08", "1_000", "1e3", "1e30", "1E5", "1.", ".5", "1.5",
    "-.5e-3", "1e", "e1", "1e30f", "10de", "1234567e8", "0x", "_1", "1_", "+", "-", ".", "..", "-.", "+.inf", ".NaN",
    ".inf", "12:30", "12:30:45", "1:2", "2001-01-01", "2001-1-1", "2001-01-01T00:00:00Z", "2001-01-01 00:00:00", "<<",
    "=", "---", "...", "--- a", "-", "- a", "?", "? a", ":", "a:", "a: b", ": a", "a:b", "#", "a #b", "a#b", "#a",
    "&a", "*a", "!", "!a", "!!str a", "|", ">", "|-", "%", "%YAML", "@", "`", "'", '"', "'a'", '"a"', "a'b", 'a"b',
    "\\", "\\n", "a\\b", "[", "]", "{", "}", "[a]", "{a: b}", "{{ a }}", ",", "a, b", "a,b", "a]b", "nvidia.com/gpu",
    "mig-1g.10gb", "\x00", "\x07", "\x1b[0m", "\x7f", "\x85", "\xa0", "\xad", "\u2028", "a\u2029b", "\ufeff",
    "\ufffe", "\uffff", "é", "a\x85b\n", "a\u2028b\nc\n", "a\ufeffb\nc\n", "a\x00b\nc\n", "😀", "a😀\nb\n", "漢字",
    "x" * 2000, "x y " * 500 + "z",
]
# fmt: on


class CoreLoader(yaml.CSafeLoader):
    """Reads scalars by the core schema of YAML 1.2 (chapter 10.3)."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]  # PyYAML declares it on instances


for _tag, _pattern in {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
}.items():
    CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), None)
CoreLoader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(node.value, 10))

READERS: list[Any] = [yaml.CSafeLoader, yaml.SafeLoader, CoreLoader]


def assert_reads_back(document: dict[str, Any]) -> str:
    text = to_yaml(document)
    for reader in READERS:
        read = yaml.load(text, Loader=reader)
        assert read == document, reader
        assert repr(read) == repr(document), reader  # True is not 1, and 1 is not 1.0
    return text


STYLE = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: sharing
  labels: {}
  finalizers: []
items:
- a
- b: c
  d:
  - e
  - f: true
- - g
  - - h
- {}
- []
data:
  config.yaml: |
    version: v1

    flags:
      a: 1
  pci: "1e30"
  nothing: null
  count: 3
  share: 0.5
"""


def test_style_is_that_of_kustomize() -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "sharing", "labels": {}, "finalizers": []},
        "items": ["a", {"b": "c", "d": ["e", {"f": True}]}, ["g", ["h"]], {}, []],
        "data": {
            "config.yaml": "version: v1\n\nflags:\n  a: 1\n",
            "pci": "1e30",
            "nothing": None,
            "count": 3,
            "share": 0.5,
        },
    }
    assert assert_reads_back(body) == STYLE


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a\nb\n", "k: |\n  a\n  b\n"),
        ("a\nb", "k: |-\n  a\n  b\n"),
        ("a\n\n\n", "k: |+\n  a\n\n\n"),
        ("  a\nb\n", "k: |2\n    a\n  b\n"),
        ("\n  a\nb", "k: |2-\n\n    a\n  b\n"),
        ("a # b: c\n- d\n", "k: |\n  a # b: c\n  - d\n"),
        ("a \nb\n", 'k: "a \\nb\\n"\n'),
        ("\ta\nb\n", 'k: "\\ta\\nb\\n"\n'),
        ("a\r\nb\r\n", 'k: "a\\r\\nb\\r\\n"\n'),
        ("a\u2028b\n", 'k: "a\\u2028b\\n"\n'),
        ("\n\n", 'k: "\\n\\n"\n'),
    ],
)
def test_text_of_several_lines_is_a_block_where_that_is_exact(text: str, written: str) -> None:
    assert assert_reads_back({"k": text}) == written


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("requests.nvidia.com/mig-1g.10gb", "requests.nvidia.com/mig-1g.10gb"),
        ("Written by hand", "Written by hand"),
        ("/etc/config", "/etc/config"),
        ("A100-80GB", "A100-80GB"),
        ("yes sir", "yes sir"),
        ("1g.10gb", '"1g.10gb"'),
        ("nvcr.io/nvidia:26.7", '"nvcr.io/nvidia:26.7"'),
        ("größe", '"größe"'),
        ("\x7f\x85\ufeff", '"\\u007f\\u0085\\ufeff"'),
        ("😀", '"😀"'),
    ],
)
def test_strings_are_plain_only_where_no_reader_takes_them_for_something_else(text: str, written: str) -> None:
    assert assert_reads_back({"k": text, "l": [text], text: "v"}) == f"k: {written}\nl:\n- {written}\n{written}: v\n"


@every(NASTY, ascii)
def test_a_nasty_string_reads_back_as_key_value_and_item(text: str) -> None:
    assert_reads_back({text: text, "l": [text, [text], {text: [text]}], "m": {"n": {text: {text: text}}}})


def test_strings_of_a_few_nasty_characters_read_back() -> None:
    alphabet = "yn0e1.+-_xo: \n#\"'\\"
    strings = ["".join(parts) for length in range(4) for parts in itertools.product(alphabet, repeat=length)]
    longer = ["".join(parts) for parts in itertools.product(alphabet, repeat=4)]
    strings += random.Random(1).sample(longer, 8_000)
    text = to_yaml({"k": strings})
    for reader in (yaml.CSafeLoader, CoreLoader):
        assert yaml.load(text, Loader=reader) == {"k": strings}


def test_plain_strings_are_none_that_go_reads_as_something_else() -> None:
    """go-yaml looks at the first character: after a letter only whole words count (resolve.go, both v2 and v3)."""
    alphabet = "yYnNtTfFoO~089.eExX_+-=<:aIlurse"
    words = {"y", "Y", "n", "N", "null", "Null", "NULL"} | {
        spelling(word)
        for word in ("yes", "no", "on", "off", "true", "false")
        for spelling in (str.lower, str.upper, str.title)
    }
    for length in range(1, 4):
        for parts in itertools.product(alphabet, repeat=length):
            _assert_go_reads_a_string("".join(parts), words)
    for word in words:
        assert to_yaml({"k": word}) == f'k: "{word}"\n'


def _assert_go_reads_a_string(text: str, words: set[str]) -> None:
    written = to_yaml({"k": text})[3:-1]
    if written[0] != '"':
        assert written[0] not in "0123456789+-.~<="
        assert written not in words


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.text("ab \n\t:#-'\"\\y01e.{}[]", max_size=12)
    | st.sampled_from(NASTY)
)
keys = st.text() | st.sampled_from(NASTY)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4))


@given(st.dictionaries(keys, values, max_size=5))
def test_any_data_reads_back(document: dict[str, Any]) -> None:
    assert_reads_back(document)


@given(st.dictionaries(keys, values, max_size=5))
def test_text_has_a_line_end_at_its_end_and_none_but_newlines(document: dict[str, Any]) -> None:
    text = to_yaml(document)
    assert text.endswith("\n")
    assert not re.search("[\r\x85\u2028\u2029]", text)


@pytest.mark.parametrize("number", [0.1, 1e16, 1e22, 1e-7, -1e300, 5e-324, 1.0, -0.0])
def test_floats_are_floats_to_every_reader(number: float) -> None:
    assert_reads_back({"k": number})


class Color(StrEnum):
    RED = "red"


def test_values_may_be_of_other_types_that_mean_the_same() -> None:
    document = {"enum": Color.RED, "tuple": ("a", ("b",)), "proxy": MappingProxyType({"c": 1}), "l": [Color.RED]}
    assert to_yaml(document) == "enum: red\ntuple:\n- a\n- - b\nproxy:\n  c: 1\nl:\n- red\n"


@pytest.mark.parametrize("value", [b"bytes", {"set"}, object(), {1: "int key"}, {None: "a"}, {True: "a"}])
def test_anything_else_is_an_error(value: object) -> None:
    with pytest.raises(TypeError):
        to_yaml({"k": value})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", "a\n\udfff"])
def test_what_yaml_cannot_hold_is_an_error(value: object) -> None:
    with pytest.raises(ValueError, match=r"number|surrogates"):
        to_yaml({"k": value})


def test_output_does_not_depend_on_what_was_written_before() -> None:
    first = to_yaml({"k": "fresh-string-1"})
    for number in range(70_000):
        to_yaml({"k": f"s{number}"})
    assert to_yaml({"k": "fresh-string-1"}) == first


def test_kubectl_reads_the_same(tmp_path: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH")
    strings = [text for text in NASTY if len(text) < 1000]
    data = {f"k{number}": text for number, text in enumerate(strings)}
    annotations = dict.fromkeys(strings, "key")
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "annotations": annotations},
        "data": data,
    }
    (tmp_path / "configmap.yaml").write_text(to_yaml(body), encoding="utf-8")
    command = ["kubectl", "annotate", "--local", "-f", str(tmp_path / "configmap.yaml"), "-o", "json", "mark=1"]
    environment = {**os.environ, "KUBECONFIG": os.devnull}
    result = subprocess.run(command, capture_output=True, check=True, env=environment)
    read = json.loads(result.stdout)
    assert read["data"] == data
    assert read["metadata"]["annotations"] == {**annotations, "mark": "1"}
