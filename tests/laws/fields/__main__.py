"""Ask of fields what people ask, and print each question without an answer.

python -m tests.laws.fields PoolSpec.nodeLabels PoolSpec.taints
"""

from __future__ import annotations

import sys

from tests.laws.fields.examples import FIELDS_ASKED, example_of
from tests.laws.fields.questions import QUESTIONS, unanswered


def main(fields: list[str]) -> int:
    """Print a line for each field; 2 says that a name is no field that a platform can set."""
    if not fields or (unknown := sorted({*fields} - FIELDS_ASKED)):
        print(f"no such field: {', '.join(unknown)}" if fields else __doc__)
        return 2
    for field in fields:
        example = example_of(field)
        if example is None:
            print(f"{field}: no platform of `tests/laws/` has it with another valid value")
        else:
            missing = set(unanswered(example))
            answers = ", ".join(f"{question} {'no' if question in missing else 'yes'}" for question in QUESTIONS)
            print(f"{field} at {example.scalar.place} of `{example.platform}`: {answers}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
