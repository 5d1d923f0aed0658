"""A validator knows what comes with it, and asks nobody for anything else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuplan.compiler.manifests.validators import compile_schema, registry
from tests.listener import Listener

KNOWN = "https://example.com/definitions.json"
REFERENCES = ("http://@/x", "http://@/x#/a/b", "https://@/x", "ftp://@/x", "file://FILE", "file://FILE#/type", "FILE")


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as listener:
        yield listener


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("is_known", [True, False])
def test_a_reference_to_elsewhere_makes_no_validator(
    tmp_path: Path, listener: Listener, keyword: str, reference: str, *, is_known: bool
) -> None:
    (tmp_path / "schema.json").write_text('{"type": "string", "const": "hunter2"}')
    target = reference.replace("@", listener.address).replace("FILE", f"{tmp_path}/schema.json")
    known = registry(KNOWN, {"text": {"type": "string"}}) if is_known else None

    for schema in ({keyword: target}, {"properties": {"a": {keyword: target}}}):
        with pytest.raises(ValueError, match=r"failed|not present|does not exist") as caught:
            compile_schema(schema, known)
        assert "hunter2" not in str(caught.value)
    assert listener.connections == 0


@pytest.mark.parametrize("keyword", ["$id", "$schema"])
def test_an_address_that_only_names_is_not_asked(listener: Listener, keyword: str) -> None:
    assert compile_schema({keyword: f"http://{listener.address}/x", "type": "string"}).is_valid("a")
    assert listener.connections == 0


def test_what_comes_with_it_is_known() -> None:
    known = registry(KNOWN, {"text": {"type": "string"}})

    validator = compile_schema({"properties": {"a": {"$ref": f"{KNOWN}#/$defs/text"}}}, known)

    assert validator.is_valid({"a": "b"})
    assert not validator.is_valid({"a": 1})
    assert compile_schema({"$ref": "#/$defs/x", "$defs": {"x": {"type": "null"}}}).is_valid(None)
