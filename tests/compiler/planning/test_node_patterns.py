"""Which names a node pattern matches, whether two patterns can match the same one, and how many there are."""

from __future__ import annotations

import itertools
import re
import time

import pytest
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.planning.node_pattern_syntax import Unreadable
from gpuplan.compiler.planning.node_patterns import (
    NodePattern,
    count_names,
    find_common_name,
    find_name,
    find_other_name,
    parse,
)

LEGAL_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
SHORT_NAMES = [
    name
    for length in range(1, 6)
    for letters in itertools.product("ab0-.", repeat=length)
    if LEGAL_NAME.fullmatch(name := "".join(letters))
]


def pattern(text: str) -> NodePattern:
    found = parse(text)
    assert isinstance(found, NodePattern), found
    return found


def why_unreadable(text: str) -> tuple[str, int]:
    found = parse(text)
    assert isinstance(found, Unreadable)
    return found.reason, found.column


def common(one: str, other: str) -> str | None:
    return find_common_name(pattern(one), pattern(other))


# --- Two patterns ------------------------------------------------------------------------------------------------


def test_different_numbers_do_not_meet() -> None:
    assert common("gpu-a100-[0-9]+", "gpu-h100-[0-9]+") is None


def test_a_pattern_meets_the_more_general_one_and_the_shortest_name_proves_it() -> None:
    assert common("gpu-a100-[0-9]{2}", "gpu-.*") == "gpu-a100-00"


def test_different_endings_do_not_meet() -> None:
    assert common(".*-a100", ".*-h100") is None


def test_a_longer_prefix_meets_its_own_beginning() -> None:
    assert common("gpu-.*", "gpu-large-.*") == "gpu-large-a"


def test_an_unescaped_dot_matches_more_than_a_dot() -> None:
    assert common("a.b", "axb") == "axb"
    assert common(r"a\.b", "axb") is None


def test_numbers_of_different_length_do_not_meet() -> None:
    assert common("n[0-9]{2}", "n[0-9]{3}") is None


def test_only_a_name_that_kubernetes_allows_counts_as_common() -> None:
    assert common("gpu-", "gpu[-]") is None
    assert common(r"a\.-b", "a.-b") is None
    assert common(r"a-\.b", "a-.b") is None
    assert common(r"a\.\.b", "a..b") is None
    assert common("a-?b?", "a-.*") == "a-b"


def test_a_common_name_longer_than_a_node_name_can_be_does_not_count() -> None:
    assert common("a{250,}", "(aa)*") == "a" * 250
    assert common("a{253}b?", "a*b") is None


def test_one_character_may_come_from_several_branches() -> None:
    assert common("(gpu|cpu)-node", "[a-f]pu-.*") == "cpu-node"


# --- One pattern -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("^gpu-[0-9]+$", "gpu-12"),
        (r"ip-10-\d+-\d+\.ec2\.internal", "ip-10-3-44.ec2.internal"),
        ("[[:alpha:]]+[^a-z-]", "node7"),
        ("(?:a|b){2,3}", "aba"),
        ("(?P<rack>r[0-9])-n", "r1-n"),
        ("a+?b??", "aab"),
        ("x{0}y", "y"),
        (r"[\d.-]+", "1.2-3"),
        ("[]a]", "a"),
        ("^a|b$", "b"),
    ],
)
def test_pattern_matches(text: str, name: str) -> None:
    assert pattern(text).matches(name)


@pytest.mark.parametrize(
    ("text", "name"),
    [("gpu-[0-9]+", "xgpu-1"), ("gpu-[0-9]+", "gpu-1x"), ("[^a-z]", "a"), ("GPU", "gpu"), ("a.", "aé"), ("a+", "")],
)
def test_pattern_does_not_match(text: str, name: str) -> None:
    assert not pattern(text).matches(name)


def test_upper_case_can_match_no_name_and_is_told() -> None:
    found = pattern("GPU_[0-9]+")
    assert find_name(found) is None
    assert found.foreign == "GPU_"


def test_every_match_begins_and_ends_alike() -> None:
    found = pattern("(gpu-a|gpu-b)-[0-9]+-rack")
    assert (found.prefix, found.suffix) == ("gpu-", "-rack")


# --- Counting ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "count"),
    [("gpu-[0-7]", 8), ("gpu-[0-9]{1,2}", 110), ("(a|a|a)b?", 2), ("gpu-", 0), ("a-?b?", 3), ("[A-Z]", 0)],
)
def test_names_are_counted_once_each(text: str, count: int) -> None:
    assert count_names(pattern(text), 1000) == count


def test_counting_stops_at_what_was_asked_for() -> None:
    assert count_names(pattern("gpu-.*"), 64) == 64


# --- What is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason", "column"),
    [
        ("gpu-(?!a100).*", "look-around", 5),
        ("(?<=a)b", "look-around", 1),
        (r"(a)\1", "a back-reference", 4),
        ("(?P<x>a)(?P=x)", "a back-reference", 9),
        ("(?i)gpu", "flags", 1),
        (r"gpu\b", "a word boundary", 4),
        (r"\Agpu", "an anchor", 1),
        (r"\pN", r"the escape `\p`", 1),
        ("a^b", "`^` inside the pattern", 2),
        ("(a$)b", "`$` inside the pattern", 3),
        ("gpu-(a", "`(` is never closed", 5),
        ("gpu)", "`)` closes no group", 4),
        ("gpu-[0-9", "`[` is never closed", 5),
        ("[z-a]", "the range `z-a` is empty", 2),
        ("[[:digits:]]", "`[:digits:]` is no class of characters", 2),
        ("*a", "`*` repeats nothing", 1),
        ("a**", "a repetition of a repetition", 2),
        ("a{3,2}", "a repetition whose end is below its start", 2),
        ("a{1,10000}", "a repetition of more than 1000", 2),
        ("a{,3}", "`{` repeats nothing", 2),
        ("a\\", "nothing follows the last backslash", 2),
        ("(((a{1,200}){1,200}){1,200})", "the pattern unrolls to more than 1024 characters", 1),
        ("(" * 60 + ")" * 60, "groups nested more than 50 deep", 51),
    ],
)
def test_what_cannot_be_compared_is_refused_with_its_place(text: str, reason: str, column: int) -> None:
    assert why_unreadable(text) == (reason, column)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[a-z]{1,253}x", "[a-z]{1,253}y?"),
        ("(a|b|c|ab|bc)*d", "(a|b|c|abc)*e"),
        ("(a*)*b", "(a+)+c"),
        ("[a-z0-9-]{1,250}0", "[a-z0-9-]{1,250}1?"),
        ("(((){254}){254}){254}", ".*"),
    ],
)
def test_hard_patterns_are_compared_in_time(one: str, other: str) -> None:
    start = time.process_time()
    common(one, other)
    find_other_name(pattern(one), (pattern(other),))
    assert time.process_time() - start < 2


# --- What a pattern leaves to none -------------------------------------------------------------------------------


def test_a_narrower_pattern_leaves_names() -> None:
    assert find_other_name(pattern("gpu-[0-9]"), (pattern("gpu-[0-4]"),)) == "gpu-5"


def test_a_wider_pattern_leaves_none() -> None:
    assert find_other_name(pattern("gpu-[0-9]+"), (pattern("gpu-.+"),)) is None


def test_two_patterns_together_leave_none() -> None:
    assert find_other_name(pattern("gpu-[0-9]"), (pattern("gpu-[0-4]"), pattern("gpu-[5-9]"))) is None


def test_a_pattern_beside_no_other_leaves_its_shortest_name() -> None:
    assert find_other_name(pattern("b|a0"), ()) == "b"


def test_groups_count_as_nested_only_within_each_other() -> None:
    assert pattern("(" * 50 + "a" + ")" * 50).matches("a")
    assert pattern("(a)" * 60).matches("a" * 60)


# --- Against brute force and Python's own engine ------------------------------------------------------------------

atoms = st.sampled_from(["a", "b", "0", "-", r"\.", ".", "[ab]", "[^a]", r"\d", "[a-b0]"])
repetitions = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,2}", "{2,}", "{0}"])
patterns = st.recursive(
    atoms | st.just(""),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda branches: f"({'|'.join(branches)})"),
        st.tuples(inner, repetitions).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    ),
    max_leaves=8,
).filter(lambda text: text.count("(?:") <= 4)  # Python's engine tries every way to repeat a repetition


@settings(max_examples=300)
@given(patterns)
def test_matches_what_pythons_engine_matches(text: str) -> None:
    ours, theirs = pattern(text), re.compile(text)
    for name in SHORT_NAMES[::7]:
        assert ours.matches(name) == bool(theirs.fullmatch(name)), name


@settings(max_examples=200)
@given(patterns, patterns)
def test_the_common_name_is_the_shortest_there_is(one: str, other: str) -> None:
    both = [name for name in SHORT_NAMES if re.fullmatch(one, name) and re.fullmatch(other, name)]
    found = common(one, other)
    if found is None:
        assert not both
        return
    assert LEGAL_NAME.fullmatch(found)
    assert re.fullmatch(one, found)
    assert re.fullmatch(other, found)
    if both:
        assert len(found) == len(both[0])
    else:
        assert len(found) > 5


@settings(max_examples=200)
@given(patterns, st.lists(patterns, max_size=2))
def test_the_other_name_is_matched_by_none_of_the_others(text: str, others: list[str]) -> None:
    beside = [
        name
        for name in SHORT_NAMES
        if re.fullmatch(text, name) and not any(re.fullmatch(other, name) for other in others)
    ]
    found = find_other_name(pattern(text), tuple(map(pattern, others)))
    if found is None:
        assert not beside
        return
    assert LEGAL_NAME.fullmatch(found)
    assert re.fullmatch(text, found)
    assert not any(re.fullmatch(other, found) for other in others)
    if beside:
        assert len(found) <= len(beside[0])


short_patterns = st.recursive(
    st.sampled_from(["a", "b", "0", "-", "[ab]", "b?", "(?:a|-|)"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda branches: f"({'|'.join(branches)})"),
    ),
    max_leaves=5,
)


@settings(max_examples=200)
@given(short_patterns)
def test_counts_as_many_names_as_there_are(text: str) -> None:
    matching = [name for name in SHORT_NAMES if re.fullmatch(text, name)]
    assert count_names(pattern(text), 10_000) == len(matching)
