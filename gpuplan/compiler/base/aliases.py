"""Judge how much the aliases of a YAML text stand for, before anything follows them."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.depth import MAX_TEXT_DEPTH

MAX_ALIASED_VALUES: Final = 10_000


def has_few_aliases(text: str, most: int = MAX_ALIASED_VALUES) -> bool:
    """Whether aliases of a YAML text stand for so few values that it can be gone through; one in itself has no end.

    A text that nests too deep is not looked at to its end, since libyaml takes quadratic time in the depth of brackets.
    """
    if "*" not in text:
        return True
    import yaml

    sizes, within, values, aliased = dict[str | None, int](), list[tuple[str | None, int]](), 0, 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            size = sizes.get(event.anchor, most + 1)
            values, aliased = values + size, aliased + size
        elif isinstance(event, yaml.ScalarEvent):
            values, sizes[event.anchor] = values + 1, 1
        elif isinstance(event, yaml.CollectionStartEvent):
            within.append((event.anchor, values))
            sizes.pop(event.anchor, None)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, start = within.pop()
            sizes[anchor] = values - start + 1
        if aliased > most or len(within) > MAX_TEXT_DEPTH:
            return False
    return True
