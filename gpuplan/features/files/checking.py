"""Judge files of others as they are: without a platform, by the same rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, GpuplanError, Origin, SourceFile, WholeFile
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import inside, mapping, text
from gpuplan.compiler.base.wording import count, joined
from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.catalog.operators import lines, parse_version
from gpuplan.compiler.checks.formats.files import is_config, mig_configs
from gpuplan.compiler.checks.formats.settings import (
    are_in,
    find_settings,
    made_config_maps,
    maps_of_plugins_chart,
    plugin_files_in,
    values_in,
)
from gpuplan.compiler.checks.registry import run_all
from gpuplan.compiler.documents import file_of, find_ignores
from gpuplan.compiler.documents.printed import Printed, is_list, read_printed
from gpuplan.compiler.manifests import (
    Manifest,
    SchemaCheck,
    Subject,
    has_schemas,
    is_object,
    kubernetes_versions,
    unusable_definitions,
)
from gpuplan.compiler.pipeline import Report
from gpuplan.compiler.pipeline.findings import tidy
from gpuplan.compiler.planning.hand_files import (
    ALL_KUSTOMIZATION_FILES,
    HandFiles,
    Object,
    found_in,
    merged,
    sort_out,
    sync_options,
)
from gpuplan.compiler.planning.plan import HandWritten
from gpuplan.features.components import OBJECT_CHECKS, PATCHED_OBJECT_INVALID, askers
from gpuplan.features.files.checks import ALONE_CHECKS, schedulers
from gpuplan.features.files.rules import NOTHING_JUDGED, POLICY_AMONG_FILES

_POLICIES: Final = "gpuplan.dev/"


def check_files(
    files: Mapping[str, bytes],
    *,
    gpus: Sequence[str] = (),
    kubernetes: str = "",
    operator: str = "",
    crds: Path | None = None,
) -> Report:
    """Judge the files by themselves: everything that one run can find.

    ``files`` are contents by name. Partitions are judged on the models ``gpus``, or on whatever model fits; objects by
    the schemas of a ``kubernetes`` minor version, by default the newest that is known, and of any release of the
    projects that define custom kinds. ``operator`` is the release of the GPU Operator whose chart values are for, where
    nothing beside them names it, by default any that is known. ``crds`` is a folder of more definitions. Trouble where
    a model or a version is not known.
    """
    models = tuple(load().get(name) for name in gpus)
    version = kubernetes or kubernetes_versions()[1]
    if not has_schemas(version):
        oldest, newest = kubernetes_versions()
        raise GpuplanError(f"there are no schemas for Kubernetes {version}", f'name one from "{oldest}" to "{newest}"')
    if operator and parse_version(operator) is None:
        raise GpuplanError(f"`{operator}` is no release of the GPU Operator", f"name one such as {lines()[-1].name}.0")
    documents: list[Printed] = []
    found: list[Diagnostic] = []
    for name, content in files.items():
        read, unread = read_printed(name, content)
        if unread and _TEMPLATE.search(content.decode(errors="replace")):
            read, unread = (), (_template(SourceFile(name, "")),)
        documents += read
        found += unread
        if not read and not unread:
            found.append(_nothing(SourceFile(name, "")))
    policies = [item for item in documents if _version_of(item).startswith(_POLICIES)]
    others = [item for item in documents if not _version_of(item).startswith(_POLICIES)]
    found += _policies(policies)
    written = sort_out(HandWritten("", item.at, item.data) for item in others)
    hand_files = _hand_files(written, models, operator)
    found += run_all((*OBJECT_CHECKS, *ALONE_CHECKS), hand_files)
    found += _unjudged_boards(hand_files)
    misfits, of_schemas = _by_schemas(hand_files, version, crds)
    found += misfits
    objects, judged = written.objects, of_schemas | _by_rules(hand_files)
    unjudged = [item for item in objects if id(item) not in judged and not item.is_patch]
    found += map(_no_rule, unjudged)
    plain = [item for item in others if "kind" not in mapping(item.data) and not is_list(mapping(item.data))]
    known = [item for item in plain if _is_known(item)]
    named = {item.path for item in objects} | {_file(item).path for item in (*known, *policies)}
    found += (_nothing(source) for source in _sources(others) if source.path not in named)
    kinds = [item.kind for item in unjudged] + [text(mapping(item.data).get("kind")) for item in policies]
    scope = _scope(len(objects) - len(unjudged), len(known), kinds)
    ignores = tuple(ignore for source in _sources(documents) for ignore in find_ignores(source))
    return Report(tidy(found, ignores, needed=ignores), (), (), len(files), scope)


def _sources(documents: Iterable[Printed]) -> Iterable[SourceFile]:
    return {source.path: source for source in map(_file, documents)}.values()


def _scope(objects: int, settings: int, kinds: Sequence[str]) -> str:
    """Return what was judged, and the kinds of what was not: `3 objects judged; 2 not: Profile, Workflow`."""
    counted = ((objects, "object"), (settings, "file of settings"))
    judged = joined([count(number, *_PLURALS.get(noun, (noun,))) for number, noun in counted if number]) or "nothing"
    return f"{judged} judged" + (f"; {len(kinds)} not: {', '.join(sorted(set(kinds)))}" if kinds else "")


_PLURALS: Final[Mapping[str, tuple[str, ...]]] = {"file of settings": ("file of settings", "files of settings")}


def _policies(policies: Sequence[Printed]) -> Iterator[Diagnostic]:
    for item in {_file(item).path: item for item in reversed(policies)}.values():
        finding = Finding(
            item.at / "apiVersion",
            f"this {mapping(item.data).get('kind')} is a policy, which is judged with its platform",
            label="nothing was said of it",
            help="run `gpuplan validate` where `policies/` and `overlays/` are",
        )
        yield POLICY_AMONG_FILES.report(finding)


def _hand_files(found: HandFiles, gpus: tuple[Gpu, ...], release: str) -> HandFiles:
    """Secrets are left out: no rule is about one."""
    settings = tuple(find_settings(found, release))
    objects = tuple(item for item in found.objects if (item.group, item.kind) != ("", "Secret"))
    made = (*made_config_maps(settings), *maps_of_plugins_chart(found))
    return HandFiles(found.kustomizations, (*objects, *made), found.documents, gpus=gpus, settings=settings)


def _version_of(printed: Printed) -> str:
    version = mapping(printed.data).get("apiVersion")
    return version if isinstance(version, str) else ""


def _file(printed: Printed) -> SourceFile:
    return file_of(printed.at)


# --- What a file is ----------------------------------------------------------------------------------------------


def _is_known(printed: Printed) -> bool:
    body = mapping(printed.data)
    is_kustomization = _file(printed).path.rpartition("/")[2] in ALL_KUSTOMIZATION_FILES
    is_settings = is_config(body) or any(values_in(body)) or bool(plugin_files_in(body))
    return is_settings or is_kustomization or any(schedulers.configurations(body, printed.at))


# --- By schemas --------------------------------------------------------------------------------------------------


def _by_schemas(files: HandFiles, version: str, crds: Path | None) -> tuple[list[Diagnostic], set[int]]:
    """Return what does not fit the schema of its kind, and the objects that have one.

    Patches and values are no objects. One of which a file has the head alone, or in a file of patches, is a part.
    """
    written: dict[int, tuple[Manifest, Object]] = {}
    for item in files.objects:
        body = merged(item.body)
        is_applied = (item.group, item.kind) not in _NOT_APPLIED and item.body.get("apiVersion") not in (None, _OF_TOOL)
        is_applied &= body.keys() - _HEAD != {"status"}
        if not item.is_patch and is_object(body) and is_applied:
            is_partial = sync_options(inside(body, "metadata", "annotations")).get("ServerSideApply") == "true"
            is_partial |= body.keys() <= _HEAD or any(word in item.path.lower() for word in _PARTS)
            about = (Subject("File", item.path),)
            manifest = Manifest("", body, is_partial=is_partial, is_foreign=True, about=about, trace=None)
            written[id(manifest)] = manifest, item
    check = SchemaCheck(version, crds)
    passed = check.passed_on(manifest for manifest, _ in written.values())
    judged = {id(written[id(manifest)][1]) for manifest in passed if check.knows(manifest)}
    how = f"judged by Kubernetes {version}, and by every release of other projects that gpuplan knows"
    found = [found_in(written[id(problem.manifest)][1], problem, how) for problem in check.problems]
    misfits = [PATCHED_OBJECT_INVALID.report(finding) for finding in found if not _is_filled_in(finding)]
    return [*misfits, *unusable_definitions(crds, Path.cwd())], judged


_HEAD: Final = frozenset(("apiVersion", "kind", "metadata"))
_PARTS: Final = ("assert", "patch")
"""Words in paths of files that hold parts of objects: patches, and what tests of kuttl and chainsaw wait for.

Those mostly state a `status` alone.
"""
_OF_TOOL: Final = "builtin"
"""The version of kinds that kustomize runs itself, such as PatchTransformer."""
_NOT_APPLIED: Final = frozenset((("operators.coreos.com", "ClusterServiceVersion"),))
"""Kinds that are packed, and applied by a program which fills them in: OLM, from a bundle."""


def _is_filled_in(finding: Finding) -> bool:
    """Whether another program writes a value before the object is applied: `${GPUS}`, `{{ .Values.gpus }}`."""
    location = finding.at.locate()
    lines = location.file.lines[location.span.start.line - 1 : location.span.start.line]
    return any("${" in line or "{{" in line for line in lines)


def _by_rules(files: HandFiles) -> set[int]:
    """Return the objects in which rules found what they are about, whatever the kind."""
    found = [item for item in files.objects if are_in(item) or any(schedulers.configurations(item.body, item.at))]
    return {id(item) for item in (*found, *askers(files))}


# --- What cannot be judged ---------------------------------------------------------------------------------------


def _no_rule(written: Object) -> Diagnostic:
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


def _template(source: SourceFile) -> Diagnostic:
    finding = Finding(
        Origin(WholeFile(source)),
        f"`{source.path}` is a template, which is no YAML",
        label="not judged",
        help="render it first, and check what comes of it, as by `helm template ... | gpuplan check -`",
    )
    return NOTHING_JUDGED.report(finding)


def _unjudged_boards(files: HandFiles) -> Iterator[Diagnostic]:
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


def _nothing(source: SourceFile) -> Diagnostic:
    known = "Kubernetes objects, files of the MIG manager and the device plugin, and values of the GPU Operator's chart"
    finding = Finding(
        Origin(WholeFile(source)),
        f"`{source.path}` holds nothing that a rule is about",
        notes=(f"gpuplan knows {known}",),
        help="leave it out",
    )
    return NOTHING_JUDGED.report(finding)
