"""Write the pages and schemas that are made of the code, or check that they are current."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import yaml

from gpuplan.cli.main import main as gpuplan
from gpuplan.cli.views.operands import operands_document
from gpuplan.cli.views.reference import (
    catalog_document,
    cli_document,
    fields_document,
    rule_document,
    rules_document,
    schedulers_document,
)
from gpuplan.cli.views.refusals import admission_rules_document, fixed_fields_document, running_work_document
from gpuplan.compiler import pipeline
from gpuplan.compiler.catalog import load
from gpuplan.compiler.planning.placement.placing import Placed, place
from gpuplan.compiler.policy.fields import find_field
from gpuplan.terminal.drawing import layout_svg, plan_svg
from gpuplan.terminal.options import GIVEN, KINDS, SCHEMAS
from gpuplan.terminal.schemas import schema_text
from gpuplan.terminal.text import printable

ROOT = Path(__file__).resolve().parents[1]
OWNED = ("rules", "fields", "schema", "pictures")
"""Folders of docs/ in which everything is generated: what is not is removed."""

SECURITY = "../SECURITY.md"
"""The one page that is not below docs/: people and hosting sites look for it at the root."""

HOSTS_OWN_WAY = """\
Use the private vulnerability reporting of the place that hosts this repository: *Report a vulnerability* on GitHub, a
confidential issue on GitLab.
"""

_CONTACT = re.compile(r"(?<=<!-- contact -->\n).*?(?=<!-- /contact -->)", re.DOTALL)
_DOORS = re.compile(r"(?<=<!-- doors -->\n).*?(?=<!-- /doors -->)", re.DOTALL)
_EXPECTATION = re.compile(r"[ \t]*# (?:error|warning|note|related): GPU\d{3}.*")
_DETAILS = re.compile(
    r"(?m)^[ \t]*(?:# )?\| \w+: .*\n|[ \t]*# related: GPU\d{3}[^;\n]*$|(?<=# )related: GPU\d{3}[^;\n]*; "
    r"| \| \w+: .*?(?=; (?:error|warning|note): GPU\d{3}|$)"
)
"""What a case states beside places and messages; `tests/checks/marks.py` reads it."""


def documents() -> dict[str, str]:
    """Every generated file, by path below docs/."""
    rules = pipeline.rules()
    return {
        "admission-rules.md": admission_rules_document(),
        "catalog.md": catalog_document(load().all()),
        "cli.md": cli_document(gpuplan),
        "fixed-fields.md": fixed_fields_document(),
        "schedulers.md": schedulers_document(),
        "explanation/running-work.md": running_work_document(),
        "explanation/what-rolls.md": operands_document(),
        "rules/index.md": rules_document(rules, yaml.safe_load((ROOT / "tools/rules.yaml").read_text("utf-8"))),
        **{
            f"rules/{rule.code}.md": rule_document(
                rule,
                *find_example(ROOT / "tests/checks" / rule.code),
                near=(*rules[max(0, index - 1) : index], *rules[index + 1 : index + 2]),
            )
            for index, rule in enumerate(rules)
        },
        **{
            f"fields/{kind}.md": fields_document(field, find_document(kind))
            for kind in (*KINDS, *GIVEN)
            if (field := find_field(kind))
        },
        **{f"schema/{name}.json": schema_text(name) for name in SCHEMAS},
        **pictures(),
        SECURITY: with_doors(
            with_contact((ROOT / "SECURITY.md").read_text(encoding="utf-8"), security_contact()),
            yaml.safe_load((ROOT / "tools/doors.yaml").read_text(encoding="utf-8")),
        ),
    }


def pictures() -> dict[str, str]:
    """Of the example, and of one GPU: what pages show."""
    plans = pipeline.validate(ROOT, ["dev", "prod"]).plans
    gpu = load().get("A100-80GB")
    placed = place(gpu, {"3g.40gb": 1, "2g.20gb": 2})
    found = {f"pictures/{plan.cluster.name}.svg": plan_svg([plan]) for plan in plans}
    return found | ({"pictures/layout.svg": layout_svg(gpu, placed.instances)} if isinstance(placed, Placed) else {})


def security_contact() -> str:
    """Who is told of vulnerabilities, by pyproject.toml; empty where it names nobody."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["tool"]["gpuplan"]["security-contact"])


def with_contact(page: str, contact: str) -> str:
    """The page with how vulnerabilities are reported, between its marks."""
    how = f"Write to <{contact}>.\n" if contact else HOSTS_OWN_WAY
    return _CONTACT.sub(lambda _: how, page)


def with_doors(page: str, doors: Sequence[Mapping[str, Any]]) -> str:
    """The page with a row for each thing that gpuplan does outside of its process, between its marks."""
    rows = ["| Access | Place in the code | Commands | Purpose and limits |", "|---|---|---|---|"]
    for door in doors:
        places = ", ".join(f"`{_source_of(module)}`" for module in door["modules"])
        names = ", ".join(f"`{name}`" for name in door["commands"]) or "any"
        rows.append(f"| {door['what']} | {places} | {names} | {door['why'].strip()} |")
    return _DOORS.sub(lambda _: "\n".join(rows) + "\n", page)


def _source_of(module: str) -> str:
    path = module.replace(".", "/")
    return f"{path}/__init__.py" if (ROOT / path).is_dir() else f"{path}.py"


def find_document(kind: str) -> str:
    """Find a document of the kind: the first of the example platform, else the first on a page of a guide."""
    places = (
        path
        for pattern in ("policies/**/*.yaml", "overlays/*/*.yaml", "docs/how-to/*.md")
        for path in sorted(ROOT.glob(pattern))
    )
    whole = re.compile(rf"^apiVersion: gpuplan\.dev/v1\nkind: {kind}\n.*?(?=^---$|^```$|\Z)", re.MULTILINE | re.DOTALL)
    return next(found[0] for path in places if (found := whole.search(path.read_text(encoding="utf-8"))))


def find_example(cases: Path) -> tuple[str, str]:
    """A rule's first failing case with its messages, and its nearest legal neighbour: the first that is fine."""
    refused, accepted = (_DETAILS.sub("", _first(cases, pattern)) for pattern in ("fail-*", "ok-*"))
    return refused, _EXPECTATION.sub("", accepted)


def _first(cases: Path, pattern: str) -> str:
    case = min(cases.glob(pattern), default=None)
    if case is None or case.is_file():
        return _text(case) if case else ""
    files = sorted(path for path in case.rglob("*") if path.is_file())
    return "---\n".join(f"# {path.relative_to(case).as_posix()}\n{_text(path)}" for path in files)


def _text(path: Path) -> str:
    """A case as a page can show it: some are about bytes that are no text."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return "\n".join(printable(line) for line in lines)


def stale(docs: Path, wanted: Mapping[str, str]) -> list[str]:
    """Paths that differ, are missing, or should not be there."""
    found = {path.relative_to(docs).as_posix() for name in OWNED for path in (docs / name).rglob("*") if path.is_file()}
    return sorted(
        path for path in found | wanted.keys() if path not in wanted or _read(docs / path) != wanted[path].encode()
    )


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def write(docs: Path, wanted: Mapping[str, str]) -> None:
    for path in stale(docs, wanted):
        if path not in wanted:
            (docs / path).unlink()
            continue
        (docs / path).parent.mkdir(parents=True, exist_ok=True)
        (docs / path).write_bytes(wanted[path].encode())


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; end with 1 when something is stale.")
def main(*, check: bool) -> None:
    """Write the generated part of the documentation."""
    wanted = documents()
    changed = stale(ROOT / "docs", wanted)
    for path in changed:
        click.echo(f"{'stale' if check else 'wrote'} {os.path.normpath(f'docs/{path}')}")
    if not check:
        write(ROOT / "docs", wanted)
    sys.exit(1 if check and changed else 0)


if __name__ == "__main__":
    main()
