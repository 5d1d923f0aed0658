"""The page of fields that no API server changes, made of what is known of kinds."""

from __future__ import annotations

from typing import Final

from gpuplan.cli.views.reference import NOTICE
from gpuplan.compiler.manifests.kinds import Immutable, Kind, known_kinds
from gpuplan.terminal.markdown import markdown_table

_TEXT: Final = """\
# Fields that cannot be changed

The API server refuses an object in which one of these fields differs from what is in the cluster. Then Argo CD and Flux
change nothing more in its folder, until somebody deletes the object or reverts the commit. [GPU705](rules/GPU705.md)
refuses such a change and says what to do instead, and `gpuplan diff` names the Application that waits for
an object that gpuplan writes.

Jobs of workloads, and ConfigMaps that pods mount, have a digest of what they hold in their name: a change makes another
object. Of a custom kind that is not listed, its definition says what cannot be changed, if gpuplan comes with the
definition; of other kinds of Kubernetes itself nothing is known here.

"""


def fixed_fields_document() -> str:
    """A row for each kind that has such fields, in the order of groups and kinds."""
    rows = [
        (_name(kind), ", ".join(map(_field, kind.immutable)), kind.source)
        for _, kind in sorted(known_kinds().items())
        if kind.immutable
    ]
    return NOTICE + _TEXT + markdown_table(("Kind", "Fields", "Read in"), rows)


def _name(kind: Kind) -> str:
    return f"{kind.kind}.{kind.group}" if kind.group else kind.kind


def _field(field: Immutable) -> str:
    """The field, with the cases in which it cannot be changed where it sometimes can."""
    cases = (
        "once set" if field.where == field.field else f"where `{field.where}` is set" if field.where else "",
        f"where `{field.unless}` is not" if field.unless else "",
        "to less" if field.may_grow else "",
        "to another value" if field.may_go else "",
    )
    when = " ".join(filter(None, cases))
    return f"`{field.field}`{f' ({when})' if when else ''}"
