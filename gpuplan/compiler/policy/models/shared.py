"""The parts of the policy language that several kinds of documents have."""

# No `from __future__ import annotations` here: pydantic would have to compile and evaluate each annotation again.

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from gpuplan.compiler.policy.marks import AnyText, Judged

API_VERSION = "gpuplan.dev/v1"
NVIDIA_CHARTS = "https://helm.ngc.nvidia.com/nvidia"


class Model(BaseModel):
    """A part of a policy: read strictly, never changed, no field that gpuplan does not know.

    `defer_build` leaves it to the kind that is really read to build its validators, once, nested parts included.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, alias_generator=to_camel, defer_build=True, hide_input_in_errors=True
    )


def exactly_one(*names_and_what: str) -> Any:  # noqa: ANN401 - pydantic's own
    """Holds a model to exactly one of some fields; what they are together comes last.

    The message is `gpuplan.compiler.policy.problems`' business.
    """
    *fields, what = names_and_what

    def check(model: Model) -> Model:
        given = [to_camel(name) for name in fields if getattr(model, name) is not None]
        if len(given) != 1:
            known = [to_camel(name) for name in fields]
            context = {"what": what, "given": given, "fields": known}
            raise PydanticCustomError("exactly_one", "exactly one of the fields", context)
        return model

    return model_validator(mode="after")(check)


Positive = Annotated[int, Field(ge=1, le=1_000_000)]
GpusPerNode = Annotated[int, Field(ge=1, le=1024)]
Rank = Annotated[int, Field(ge=-1_000_000, le=1_000_000)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Vocabulary(StrEnum):
    """The kind of words that a field takes and the catalog lists; a schema has it as `format`."""

    GPU_MODEL = "gpu-model"
    MIG_PROFILE = "mig-profile"
    UNIT = "unit"


GpuModel = Annotated[str, Field(json_schema_extra={"format": Vocabulary.GPU_MODEL.value}), Judged("GPU102")]
UnitName = Annotated[str, Field(json_schema_extra={"format": Vocabulary.UNIT.value}), Judged("GPU103")]
Instances = Annotated[
    dict[str, int],
    Field(json_schema_extra={"propertyNames": {"format": Vocabulary.MIG_PROFILE.value}}),
    Judged("GPU205"),
]
"""Counts by MIG profile."""


class Enforcement(StrEnum):
    """The action of admission policies on requests that their rules refuse."""

    DENY = "deny"
    WARN = "warn"


OF_PROGRAM = AnyText("gpuplan does not check a program's own values")


class Metadata(Model):
    """The name of a document; an overlay's document with the same kind and name changes this one."""

    name: Annotated[str, AnyText("the rule stands on the `metadata` of each kind")]
    """The document's name: lower-case letters, digits and `-`, unique among its kind."""


class Effect(StrEnum):
    """The effect of a taint on pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Taint(Model):
    """A taint on every node of a pool."""

    key: Annotated[str, Judged("GPU152")]
    """The taint's key, such as `nvidia.com/gpu`."""
    value: Annotated[str, Judged("GPU152")] = ""
    """The taint's value; tolerations with `operator: Exists` ignore it."""
    effect: Annotated[Effect, Field(strict=False)]
    """The effect on pods that do not tolerate the taint."""
