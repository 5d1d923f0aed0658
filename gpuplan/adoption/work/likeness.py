"""Whether an object of a cluster is what was written for it: the API server and controllers add to what they are given.

Defaults are those of `pkg/apis/{core,apps,batch}/v1/defaults.go` and `pkg/apis/autoscaling/v2/defaults.go` of
kubernetes/kubernetes v1.34.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpuplan.diagnostics import Path
from gpuplan.manifests import parse_quantity

_ANY: Final = object()
"""Whatever it is, somebody else has written it."""


def difference(written: object, live: object, route: Path = ()) -> Path | None:
    """Where an object first differs from what would be written; None where it is the same."""
    match written, live:
        case Mapping(), Mapping():
            return _between_mappings(written, live, route)
        case list(), list() if len(written) == len(live):
            pairs = enumerate(zip(written, live, strict=True))
            found = (difference(one, other, (*route, index)) for index, (one, other) in pairs)
            return next((item for item in found if item is not None), None)
        case _:
            return None if written == live or _is_same_amount(written, live) else route


def _between_mappings(written: Mapping[str, object], live: Mapping[str, object], route: Path) -> Path | None:
    for key, value in written.items():
        if key not in live:
            if value not in _EMPTY and not is_added((*route, key), value):
                return (*route, key)
        elif (found := difference(value, live[key], (*route, key))) is not None:
            return found
    for key, value in live.items():
        if key not in written and not is_added((*route, str(key)), value):
            return (*route, str(key))
    return None


_EMPTY: Final[tuple[object, ...]] = ("", [], {}, None)
"""What the API server leaves out."""


def _is_same_amount(written: object, live: object) -> bool:
    """Whether the API server has written the one for the other: `1.5` is `1500m`."""
    if not isinstance(written, str) or not isinstance(live, str):
        return False
    amount = parse_quantity(written)
    return amount is not None and amount == parse_quantity(live)


def is_added(route: Path, value: object) -> bool:
    """Whether what nobody has asked for at this place is a default, or a note of whoever applies or runs the object."""
    names = [part for part in route if isinstance(part, str)]
    parent, field = names[-2] if len(names) > 1 else "", names[-1]
    if parent in ("labels", "annotations") and field.startswith(_NOTES):
        return True
    if value in _EMPTY or (isinstance(value, Mapping) and difference({}, value, route) is None):
        return True
    default = _DEFAULTS.get((parent, field), _DEFAULTS.get(("", field), _NONE) if len(names) == 1 else _NONE)
    return default is _ANY or (isinstance(default, tuple) and value in default)


_NONE: Final = object()

_NOTES: Final = (
    "kubectl.kubernetes.io/",
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "app.kubernetes.io/instance",
    "deployment.kubernetes.io/",
    "batch.kubernetes.io/",
    "controller-uid",
    "job-name",
    "pv.kubernetes.io/",
    "volume.kubernetes.io/",
    "volume.beta.kubernetes.io/",
    "scaledobject.keda.sh/name",
    "kueue.x-k8s.io/managed",
    "kueue.x-k8s.io/job-uid",
)
"""Beginnings of labels and annotations by which those that apply or run an object know it again."""

_DEFAULTS: Final[Mapping[tuple[str, str], object]] = {
    ("", "status"): _ANY,
    **dict.fromkeys(
        (
            ("metadata", field)
            for field in (
                *("uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields"),
                *("finalizers", "ownerReferences", "generateName"),
            )
        ),
        _ANY,
    ),
    # Pods.
    ("spec", "dnsPolicy"): ("ClusterFirst",),
    ("spec", "restartPolicy"): ("Always",),
    ("spec", "schedulerName"): ("default-scheduler",),
    ("spec", "terminationGracePeriodSeconds"): (30,),
    ("spec", "enableServiceLinks"): (True,),
    ("spec", "serviceAccount"): _ANY,  # the old name of `serviceAccountName`
    **{
        (containers, field): values
        for containers in ("containers", "initContainers")
        for field, values in (
            ("imagePullPolicy", ("IfNotPresent", "Always")),
            ("terminationMessagePath", ("/dev/termination-log",)),
            ("terminationMessagePolicy", ("File",)),
        )
    },
    ("ports", "protocol"): ("TCP",),
    ("httpGet", "scheme"): ("HTTP",),
    **{
        (probe, field): value
        for probe in ("readinessProbe", "livenessProbe", "startupProbe")
        for field, value in (
            ("timeoutSeconds", (1,)),
            ("periodSeconds", (10,)),
            ("successThreshold", (1,)),
            ("failureThreshold", (3,)),
        )
    },
    ("configMap", "defaultMode"): (420,),
    ("secret", "defaultMode"): (420,),
    ("projected", "defaultMode"): (420,),
    ("fieldRef", "apiVersion"): ("v1",),
    # Deployments; the number that they leave to an autoscaler is its own.
    ("spec", "replicas"): _ANY,
    ("spec", "revisionHistoryLimit"): (10,),
    ("spec", "progressDeadlineSeconds"): (600,),
    # Jobs; Kueue suspends and resumes them.
    ("spec", "suspend"): _ANY,
    ("spec", "selector"): _ANY,
    ("spec", "manualSelector"): (False,),
    ("spec", "backoffLimit"): (6, 2**31 - 1),
    ("spec", "podReplacementPolicy"): ("TerminatingOrFailed", "Failed"),
    # Services.
    **dict.fromkeys((("spec", field) for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")), _ANY),
    ("spec", "type"): ("ClusterIP",),
    ("spec", "sessionAffinity"): ("None",),
    ("spec", "internalTrafficPolicy"): ("Cluster",),
    ("spec", "externalTrafficPolicy"): ("Cluster",),
    ("spec", "allocateLoadBalancerNodePorts"): (True,),
    ("spec", "healthCheckNodePort"): _ANY,
    ("ports", "nodePort"): _ANY,
    # Claims.
    ("spec", "volumeName"): _ANY,
    ("spec", "volumeMode"): ("Filesystem",),
    ("spec", "storageClassName"): _ANY,  # the cluster's own default
}
"""By the field around it and its name: the values that it has where nobody says one."""
