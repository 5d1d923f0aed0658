"""What the queues of a scheduler say of a tenant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuplan.compiler.base.values import Value


class Queue(Value):
    """What a tenant has by its queues, in the words of the policy language.

    ``parent`` is empty where the tenant is part of none. ``quotas`` are entries of `spec.quotas`. ``spec`` are further
    fields of the tenant, such as `surplus` and `names`. ``sources`` and ``remarks`` are those of the tenant's `Draft`.
    """

    tenant: str
    parent: str = ""
    namespaces: tuple[str, ...] = ()
    quotas: tuple[Mapping[str, Any], ...] = ()
    spec: Mapping[str, Any] = {}
    sources: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
