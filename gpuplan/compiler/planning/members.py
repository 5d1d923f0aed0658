"""Who a tenant's members are to the API server, and which ClusterRole each has in the tenant's namespaces."""

from __future__ import annotations

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.policy.models import Member


class Account(NamedTuple):
    """Whom a RoleBinding names; ``field`` is that of the policy which names it."""

    kind: str
    name: str
    field: str


def account_of(member: Member) -> Account:
    """A service account is a user by its user name: the authorizer sees both alike.

    (`appliesToUser` in `pkg/registry/rbac/validation/rule.go` of kubernetes/kubernetes.)
    """
    if member.user is not None:
        return Account("User", member.user, "user")
    return Account("Group", member.group or "", "group")


def role_of(member: Member) -> str:
    """The name of the ClusterRole."""
    return member.cluster_role or member.role.value


def role_field(member: Member) -> str:
    """The field of the policy that names the role."""
    return "clusterRole" if member.cluster_role else "role"
