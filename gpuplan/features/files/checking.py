"""Judge files of others as they are: without a platform, by the same rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, GpuplanError, Origin, SourceFile, WholeFile
from gpuplan.compiler.base.plain import inside, mapping
from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.catalog.operators import lines, parse_version
from gpuplan.compiler.checks.formats.files import is_config
from gpuplan.compiler.checks.formats.settings import (
    find_settings,
    made_config_maps,
    maps_of_plugins_chart,
    plugin_files_in,
    values_in,
)
from gpuplan.compiler.checks.registry import run_all
from gpuplan.compiler.documents import file_of, find_ignores
from gpuplan.compiler.documents.printed import Printed, read_printed
from gpuplan.compiler.manifests import (
    Manifest,
    Problem,
    Subject,
    check_schemas,
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
from gpuplan.features.components import OBJECT_CHECKS, PATCHED_OBJECT_INVALID
from gpuplan.features.files.checks import ALONE_CHECKS
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
        documents += read
        found += unread
        if not read and not unread:
            found.append(_nothing(SourceFile(name, "")))
    found += _judge(documents, models, version, operator, crds)
    sources = {source.path: source for source in map(_file, documents)}
    ignores = tuple(ignore for source in sources.values() for ignore in find_ignores(source))
    return Report(tidy(found, ignores, needed=ignores), (), (), len(files))


def _judge(
    documents: Sequence[Printed], gpus: tuple[Gpu, ...], version: str, operator: str, crds: Path | None
) -> Iterator[Diagnostic]:
    policies = [item for item in documents if _version_of(item).startswith(_POLICIES)]
    for item in {_file(item).path: item for item in reversed(policies)}.values():
        finding = Finding(
            item.at / "apiVersion",
            f"this {mapping(item.data).get('kind')} is a policy, which is judged with its platform",
            label="nothing was said of it",
            help="run `gpuplan validate` where `policies/` and `overlays/` are",
        )
        yield POLICY_AMONG_FILES.report(finding)
    others = [item for item in documents if not _version_of(item).startswith(_POLICIES)]
    files = _hand_files(others, gpus, operator)
    yield from _objects_of_files(files, version, crds)
    yield from run_all((*OBJECT_CHECKS, *ALONE_CHECKS), files)
    judged = {_file(item).path for item in (*policies, *(item for item in others if _is_known(item)))}
    for source in {_file(item).path: _file(item) for item in others}.values():
        if source.path not in judged:
            yield _nothing(source)


def _hand_files(documents: Iterable[Printed], gpus: tuple[Gpu, ...], release: str) -> HandFiles:
    """Secrets are left out: no rule is about one."""
    found = sort_out(HandWritten("", item.at, item.data) for item in documents)
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
    return "kind" in body or is_config(body) or any(values_in(body)) or bool(plugin_files_in(body)) or is_kustomization


# --- By schemas --------------------------------------------------------------------------------------------------


def _objects_of_files(files: HandFiles, version: str, crds: Path | None) -> Iterator[Diagnostic]:
    """Yield what does not fit the schema of its kind. Patches and values are no objects."""
    written: dict[int, tuple[Manifest, Object]] = {}
    for item in files.objects:
        body = merged(item.body)
        if not item.is_patch and is_object(body) and item.body.get("apiVersion") is not None:
            is_partial = sync_options(inside(body, "metadata", "annotations")).get("ServerSideApply") == "true"
            about = (Subject("File", item.path),)
            manifest = Manifest("", body, is_partial=is_partial, is_foreign=True, about=about, trace=None)
            written[id(manifest)] = manifest, item
    problems: tuple[Problem, ...] = check_schemas((manifest for manifest, _ in written.values()), version, crds)
    how = f"judged by Kubernetes {version}, and by every release of other projects that gpuplan knows"
    for problem in problems:
        yield PATCHED_OBJECT_INVALID.report(found_in(written[id(problem.manifest)][1], problem, how))
    yield from unusable_definitions(crds, Path.cwd())


# --- What cannot be judged ---------------------------------------------------------------------------------------


def _nothing(source: SourceFile) -> Diagnostic:
    known = "Kubernetes objects, files of the MIG manager and the device plugin, and values of the GPU Operator's chart"
    finding = Finding(
        Origin(WholeFile(source)),
        f"`{source.path}` holds nothing that a rule is about",
        notes=(f"gpuplan knows {known}",),
        help="leave it out",
    )
    return NOTHING_JUDGED.report(finding)
