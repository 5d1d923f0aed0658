"""Judge files of others as they are: without a platform, by the same rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Diagnostic, GpuplanError, SourceFile
from gpuplan.compiler.base.plain import mapping, text
from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.catalog.operators import lines, parse_version
from gpuplan.compiler.checks.formats.files import is_config
from gpuplan.compiler.checks.formats.settings import (
    are_in,
    find_settings,
    is_of_plugins_chart,
    made_config_maps,
    maps_of_plugins_chart,
    values_in,
)
from gpuplan.compiler.checks.registry import run_all
from gpuplan.compiler.documents import file_of, find_ignores
from gpuplan.compiler.documents.printed import Printed, is_list, read_printed
from gpuplan.compiler.manifests import has_schemas, kubernetes_versions
from gpuplan.compiler.pipeline import Report
from gpuplan.compiler.pipeline.findings import tidy
from gpuplan.compiler.planning.hand_files import ALL_KUSTOMIZATION_FILES, HandFiles, sort_out
from gpuplan.compiler.planning.plan import HandWritten
from gpuplan.features.components import OBJECT_CHECKS, askers
from gpuplan.features.files import unjudged
from gpuplan.features.files.checks import ALONE_CHECKS, schedulers
from gpuplan.features.files.fitting import hold_to_schemas

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
        source = SourceFile(name, "")
        template = unjudged.templates(source, content) if unread else ()
        documents += () if template else read
        found += template or unread
        if not read and not unread:
            found.append(unjudged.of_nothing(source))
    policies = [item for item in documents if _version_of(item).startswith(_POLICIES)]
    others = [item for item in documents if not _version_of(item).startswith(_POLICIES)]
    found += unjudged.of_a_platform(policies)
    written = sort_out(HandWritten("", item.at, item.data) for item in others)
    hand_files = _hand_files(written, models, operator)
    found += run_all((*OBJECT_CHECKS, *ALONE_CHECKS), hand_files)
    found += unjudged.of_boards(hand_files)
    misfits, of_schemas = hold_to_schemas(hand_files, version, crds)
    found += misfits
    objects = written.objects
    holders = (item for item in objects if are_in(item) or any(schedulers.configurations(item.body, item.at)))
    judged = of_schemas | {id(item) for item in (*holders, *askers(hand_files))}
    unknown = [item for item in objects if id(item) not in judged and not item.is_patch]
    found += map(unjudged.of_no_rule, unknown)
    plain = [item for item in others if "kind" not in mapping(item.data) and not is_list(mapping(item.data))]
    known = [item for item in plain if _is_known(item)]
    named = {item.path for item in objects} | {_file(item).path for item in (*known, *policies)}
    found += (unjudged.of_nothing(source) for source in _sources(others) if source.path not in named)
    kinds = [item.kind for item in unknown] + [text(mapping(item.data).get("kind")) for item in policies]
    scope = unjudged.scope_of(len(objects) - len(unknown), len(known), kinds)
    ignores = tuple(ignore for source in _sources(documents) for ignore in find_ignores(source))
    return Report(tidy(found, ignores, needed=ignores), (), (), len(files), scope)


def _sources(documents: Iterable[Printed]) -> Iterable[SourceFile]:
    return {source.path: source for source in map(_file, documents)}.values()


def _hand_files(written: HandFiles, gpus: tuple[Gpu, ...], release: str) -> HandFiles:
    """Secrets are left out: no rule is about one."""
    settings = tuple(find_settings(written, release))
    objects = tuple(item for item in written.objects if (item.group, item.kind) != ("", "Secret"))
    made = (*made_config_maps(settings), *maps_of_plugins_chart(written))
    return HandFiles(written.kustomizations, (*objects, *made), written.documents, gpus=gpus, settings=settings)


def _version_of(printed: Printed) -> str:
    version = mapping(printed.data).get("apiVersion")
    return version if isinstance(version, str) else ""


def _file(printed: Printed) -> SourceFile:
    return file_of(printed.at)


# --- What a file is ----------------------------------------------------------------------------------------------


def _is_known(printed: Printed) -> bool:
    body = mapping(printed.data)
    is_kustomization = _file(printed).path.rpartition("/")[2] in ALL_KUSTOMIZATION_FILES
    is_settings = is_config(body) or any(values_in(body)) or is_of_plugins_chart(body)
    return is_settings or is_kustomization or any(schedulers.configurations(body, printed.at))
