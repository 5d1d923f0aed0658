"""How the admission policies tell controllers from tenants: by what they may do in all namespaces.

A name would say less: a tenant with two namespaces can let a service account of one act in the other.
"""

from __future__ import annotations

from typing import Final

IS_CONTROLLER: Final = {"isController": "authorizer.group('').resource('pods').check('patch').allowed()"}
"""A variable: whether whoever makes the request may change the pods of every namespace.

The controllers of Jobs, of Kueue and of KAI-Scheduler may (`buildControllerRoles` in `plugin/pkg/auth/authorizer/rbac/
bootstrappolicy/controller_policy.go` of kubernetes/kubernetes, `config/components/rbac/role.yaml` of Kueue,
`deployments/kai-scheduler/templates/rbac` of KAI-Scheduler), and so may whoever administers the cluster. Roles that
tenants have are bound in their namespaces alone. The question costs more than others: it comes last in a rule.
"""
