"""Say what gpuplan cannot judge: policies, templates, and objects and files that no rule is about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Origin, SourceFile, WholeFile
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping
from gpuplan.compiler.base.wording import count, joined
from gpuplan.compiler.checks.formats.files import mig_configs
from gpuplan.compiler.documents import file_of
from gpuplan.compiler.documents.printed import Printed
from gpuplan.compiler.planning.hand_files import HandFiles, Object
from gpuplan.features.files.rules import NOTHING_JUDGED, POLICY_AMONG_FILES


def scope_of(objects: int, settings: int, kinds: Sequence[str]) -> str:
    """Return what was judged, and the kinds of what was not: `3 objects judged; 2 not: Profile, Workflow`."""
    of_settings = count(settings, "file of settings", "files of settings") if settings else ""
    judged = joined([*filter(None, (count(objects, "object") if objects else "", of_settings))]) or "nothing"
    return f"{judged} judged" + (f"; {len(kinds)} not: {', '.join(sorted(set(kinds)))}" if kinds else "")


def of_a_platform(policies: Sequence[Printed]) -> Iterator[Diagnostic]:
    """Report policies, one a file: each is judged beside the others of its platform."""
    for item in {file_of(item.at).path: item for item in reversed(policies)}.values():
        finding = Finding(
            item.at / "apiVersion",
            f"this {mapping(item.data).get('kind')} is a policy, which is judged with its platform",
            label="nothing was said of it",
            help="run `gpuplan validate` where `policies/` and `overlays/` are",
        )
        yield POLICY_AMONG_FILES.report(finding)


def of_no_rule(written: Object) -> Diagnostic:
    """Report an object of a kind that no rule is about."""
    finding = Finding(
        written.place("kind"),
        f"no rule is about {written.title}",
        label="not judged",
        help="leave it out, or name a folder with the definition of its kind by `--crds`",
    )
    return NOTHING_JUDGED.report(finding)


_TEMPLATE: Final = regex(
    r"^\s*(?:- )?(?:[\w./\"-]+:\s+)?\{\{-?\s*(?:/\*|[.$(]|(?:block|default|define|else|end|if|include|printf|range"
    r"|required|template|toYaml|tpl|with)\b)|^\s*\{%|^\s*\$\{\w+\}\s*$",
    re.MULTILINE,
)
"""A mark of a template of Helm, Jinja or envsubst, which is no YAML."""


def templates(source: SourceFile, content: bytes) -> tuple[Diagnostic, ...]:
    """Report a file that cannot be read, if it is a template."""
    if not _TEMPLATE.search(content.decode(errors="replace")):
        return ()
    finding = Finding(
        Origin(WholeFile(source)),
        f"`{source.path}` is a template, which is no YAML",
        label="not judged",
        help="render it first, and check what comes of it, as by `helm template ... | gpuplan check -`",
    )
    return (NOTHING_JUDGED.report(finding),)


def of_boards(files: HandFiles) -> Iterator[Diagnostic]:
    """Report files of the MIG manager for models whose placements nobody published."""
    for config in mig_configs(files):
        for gpu in files.gpus:
            if not gpu.is_complete:
                finding = Finding(
                    config.at,
                    f"entries are not judged on {gpu.id}: {gpu.incomplete_reason}",
                    label="not judged on this model",
                    help="run `nvidia-smi mig -lgipp` on a node for the placements of its profiles",
                )
                yield NOTHING_JUDGED.report(finding)


def of_nothing(source: SourceFile) -> Diagnostic:
    """Report a file in which nothing is known."""
    known = "Kubernetes objects, files of the MIG manager and the device plugin, and values of the GPU Operator's chart"
    finding = Finding(
        Origin(WholeFile(source)),
        f"`{source.path}` holds nothing that a rule is about",
        notes=(f"gpuplan knows {known}",),
        help="leave it out",
    )
    return NOTHING_JUDGED.report(finding)
