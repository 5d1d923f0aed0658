"""The page that lists what admission refuses of tenants, rule by rule."""

from __future__ import annotations

from gpuplan.compiler.admission.policies import KnownRule, every_rule
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.planning.schedulers import SCHEDULERS

_HEAD = """\
# Admission rules

What the API server refuses in the namespaces of tenants, by ValidatingAdmissionPolicies that `gpuplan build` writes.
Each rule has a name. A refusal says what to write instead; here stands its short form.

"""

_OPTIONAL = """\
## Optional rules

These refuse what an earlier gpuplan let in, or what some platforms want. `admission.without` of a cluster leaves them
out by name, and `gpuplan validate` then says what tenants may do ([GPU421](rules/GPU421.md)):

```yaml
spec:
  admission:
    without: [tolerations-within-pools]
```

| rule | without it |
|---|---|
"""


def admission_rules_document() -> str:
    """One table for each policy, and the optional rules with what becomes possible without them."""
    rules = every_rule()
    policies = dict.fromkeys(rule.policy for rule in rules)
    tables = "".join(_table(policy, [rule for rule in rules if rule.policy == policy]) for policy in policies)
    optional = "".join(f"| `{rule.name}` | {_cell(rule.optional)} |\n" for rule in rules if rule.optional)
    return f"{_HEAD}{tables}{_OPTIONAL}{optional}"


def _table(policy: str, rules: list[KnownRule]) -> str:
    rows = "".join(f"| `{rule.name}` | {_cell('; or: '.join(rule.messages))} | {_with(rule)} |\n" for rule in rules)
    return f"## {policy}\n\n| rule | says | with |\n|---|---|---|\n{rows}\n"


def _with(rule: KnownRule) -> str:
    return "any scheduler" if len(rule.schedulers) == len(SCHEDULERS) else joined(rule.schedulers)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
