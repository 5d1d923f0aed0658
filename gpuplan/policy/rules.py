"""Rules on what a policy document may contain (GPU03x)."""

from __future__ import annotations

from gpuplan.diagnostics import Family, Rule, Severity

UNKNOWN_FIELD = Rule(
    "GPU030",
    "unknown-field",
    Severity.ERROR,
    Family.POLICY,
    """A document has a field that the policy language does not know.

## Why
A field that nobody reads looks as if it did something. Most are misspelt; the others belong to another kind or to a
later version.

## Instead
Use the field that the help line names, or see what there is: `gpuplan explain Pool.spec`.
""",
    ignorable=False,
)

MISSING_FIELD = Rule(
    "GPU031",
    "missing-field",
    Severity.ERROR,
    Family.POLICY,
    """A document lacks a field that has no default.

## Why
These are facts that gpuplan cannot guess: a layout cannot be judged without its GPU model, nor capacity counted
without the number of nodes.

## Instead
Add the field; `gpuplan explain` with its path says what it holds.
""",
    ignorable=False,
)

WRONG_TYPE = Rule(
    "GPU032",
    "wrong-type",
    Severity.ERROR,
    Family.POLICY,
    """A field holds another type of value than it should, such as text for a number.

## Why
Values are never converted silently: `"3"` is text, and an unquoted `1.30` is the number 1.3.

## Instead
Write numbers and `true` or `false` without quotes, versions and other text with them.
""",
    ignorable=False,
)

VALUE_NOT_ALLOWED = Rule(
    "GPU033",
    "value-not-allowed",
    Severity.ERROR,
    Family.POLICY,
    """A field holds a value that is outside of what it can be.

## Why
The field has a closed set of values, a range or a form; nothing is built from a value outside of it.

## Instead
Use one of the values that the note lists.
""",
    ignorable=False,
)

NOT_EXACTLY_ONE = Rule(
    "GPU034",
    "not-exactly-one",
    Severity.ERROR,
    Family.POLICY,
    """Of several fields that exclude each other, none or more than one is given.

## Why
A node has one sharing kind: the device plugin's configuration holds for all GPUs of the node, and where time-slicing
and MPS are both given it takes MPS without a word. A layout likewise comes from one place.

## Instead
Keep one of the fields. GPUs that shall be shared in two ways need two pools.
""",
    ignorable=False,
)

UNKNOWN_KIND = Rule(
    "GPU035",
    "unknown-kind",
    Severity.ERROR,
    Family.POLICY,
    """A document's `kind` is missing or not one of gpuplan's.

## Why
Only documents of the kinds `Cluster`, `Pool`, `MigLayout`, `PriorityClass`, `Tenant` and `Workload` describe a
platform. Plain Kubernetes objects go into a kustomize Component beside the overlay.

## Instead
Correct the kind, or move the object to `overlays/<cluster>/kustomize/<stage>/`.
""",
    ignorable=False,
)

UNKNOWN_API_VERSION = Rule(
    "GPU036",
    "unknown-api-version",
    Severity.ERROR,
    Family.POLICY,
    """A document's `apiVersion` is missing or not `gpuplan.dev/v1`.

## Why
The version says which fields a document may have. This gpuplan reads `gpuplan.dev/v1`.

## Instead
Write `apiVersion: gpuplan.dev/v1`.
""",
    ignorable=False,
)

RULES = (
    UNKNOWN_FIELD,
    MISSING_FIELD,
    WRONG_TYPE,
    VALUE_NOT_ALLOWED,
    NOT_EXACTLY_ONE,
    UNKNOWN_KIND,
    UNKNOWN_API_VERSION,
)
