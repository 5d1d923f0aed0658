"""Rules on names that a policy refers to (GPU10x): what they point at must exist."""

from __future__ import annotations

from gpuplan.diagnostics import Family, Rule, Severity

UNKNOWN_REFERENCE = Rule(
    "GPU101",
    "unknown-reference",
    Severity.ERROR,
    Family.PLANNING,
    """A document refers to another one that does not exist on this cluster.

## Why
Pools refer to layouts and to other pools, tenants to pools, priority classes and parents. A cluster sees the documents
of its bases and of its own overlay, less those that the overlay removes.

## Instead
Correct the name, or add the document to the bases or to the overlay.
""",
    ignorable=False,
)

UNKNOWN_GPU = Rule(
    "GPU102",
    "unknown-gpu",
    Severity.ERROR,
    Family.PLANNING,
    """A pool or a layout names a GPU model that the catalog does not have.

## Why
The same MIG profile name is another fraction of another board, and capacity, memory and limits differ by model, so
nothing can be judged without it.

## Instead
Use a name that `gpuplan catalog` lists. It also finds a model by the product label that nodes carry.
""",
    ignorable=False,
)

UNKNOWN_UNIT = Rule(
    "GPU103",
    "unknown-unit",
    Severity.ERROR,
    Family.PLANNING,
    """A quota or a workload names a unit that its pool does not hand out.

## Why
What a pool hands out follows from its sharing: `gpu`, `shared`, a MIG profile of its layout, or `fraction`. A quota on
anything else would never be used, and a workload that asks for it never starts.

## Instead
Name one of the pool's units, or change the pool's sharing.
""",
    ignorable=False,
)

UNIT_NEEDED = Rule(
    "GPU104",
    "unit-needed",
    Severity.ERROR,
    Family.PLANNING,
    """A quota or a workload leaves out the unit, and its pool hands out several.

## Why
A quota's numbers count units. With two MIG profiles in the layout, `guaranteed: 4` could mean either.

## Instead
Add `unit:` with one of the pool's units; write one quota per unit.
""",
    ignorable=False,
)

NAMESPACE_NEEDED = Rule(
    "GPU105",
    "namespace-needed",
    Severity.ERROR,
    Family.PLANNING,
    """A workload does not say where it runs, and its tenant does not have exactly one namespace.

## Why
A workload's objects live in a namespace of its tenant, whose quota they use. A tenant that is only the parent of others
has none.

## Instead
Add `namespace:` with one of the tenant's namespaces.
""",
    ignorable=False,
)

RULES = (UNKNOWN_REFERENCE, UNKNOWN_GPU, UNKNOWN_UNIT, UNIT_NEEDED, NAMESPACE_NEEDED)
