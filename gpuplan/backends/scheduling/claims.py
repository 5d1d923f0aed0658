"""What pods may claim, on clusters whose GPUs are claimed: devices by templates of classes that their tenant may use.

Tenants may write templates and claims of their own, of any class; what those allocate is for the ResourceQuota to say.
A pod names a template and no class, so that pods are held to the templates that gpuplan writes: each is for one device
of the class whose name it has. A claim by its own name could be of any class and of several pods.
"""

from __future__ import annotations

from gpuplan.manifests import AdmissionRule

CLAIM_VARIABLES = {
    "otherClaimTemplates": r"has(params.data.otherClaimTemplates) ? params.data.otherClaimTemplates.split('\n') : []",
    "claims": """
        !has(object.spec.resourceClaims) ? [] : object.spec.resourceClaims.filter(claim,
          !has(claim.resourceClaimTemplateName) ||
          !(claim.resourceClaimTemplateName in variables.otherClaimTemplates))
        """,
    "templates": """
        variables.claims.filter(claim, has(claim.resourceClaimTemplateName)).map(claim, claim.resourceClaimTemplateName)
        """,
}

_BY_TEMPLATE = AdmissionRule(
    "size(variables.templates) == size(variables.claims)",
    "devices are claimed by a resourceClaimTemplateName; resourceClaimName is not open to tenants",
)

_TEMPLATE_GRANTED = AdmissionRule(
    "variables.templates.all(name, variables.grants.exists(grant, grant[1] == name))",
    "the pod claims a device that its tenant has no quota on",
    """
    'tenant ' + variables.tenant + ' has no quota on what is claimed by ' +
    variables.templates.filter(name, !variables.grants.exists(grant, grant[1] == name)).join(' and ') +
    '; resourceClaimTemplateName may be ' + (size(variables.grants) == 0
      ? 'none' : variables.grants.map(grant, grant[1] + ' in pool ' + grant[0]).join(', '))
    """,
)

_TEMPLATE_GRANTED_IN_POOL = AdmissionRule(
    "variables.templates.all(name, variables.here.exists(grant, grant[1] == name))",
    "the pod claims a device that its tenant has a quota on, but not in this pool",
    """
    'in pool ' + variables.pool + ' tenant ' + variables.tenant + ' may claim by ' +
    variables.here.map(grant, grant[1]).join(' or ') + ', not by ' +
    variables.templates.filter(name, !variables.here.exists(grant, grant[1] == name)).join(' and ')
    """,
)

_MOST_CLAIMS_PER_CONTAINER = AdmissionRule(
    """
    variables.here.all(grant, grant[2] == 'any' || variables.containers.all(c,
      !has(c.resources) || !has(c.resources.claims) ||
      size(c.resources.claims.filter(used, variables.claims.exists(claim, claim.name == used.name &&
        has(claim.resourceClaimTemplateName) && claim.resourceClaimTemplateName == grant[1]))) <= int(grant[2])))
    """,
    "a container claims more devices than its tenant may have in one container",
    """
    'a container of tenant ' + variables.tenant + ' may claim at most ' +
    variables.here.filter(grant, grant[2] != 'any').map(grant, grant[2] + ' by ' + grant[1]).join(', ')
    """,
)

CLAIM_RULES = (_BY_TEMPLATE, _TEMPLATE_GRANTED)
"""On what a pod claims, wherever it runs."""

CLAIM_RULES_IN_POOL = (_TEMPLATE_GRANTED_IN_POOL, _MOST_CLAIMS_PER_CONTAINER)
"""On what it claims in its pool."""
