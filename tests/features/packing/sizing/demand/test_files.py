"""`Demand` documents and tables: what they ask for, and what is said of those that do not say it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from textwrap import dedent

import pytest
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.documents import read_text
from gpuplan.compiler.planning.plan import Isolation, Plan
from gpuplan.compiler.policy import parse
from gpuplan.features.packing.sizing.demand import from_files, tables_beside
from gpuplan.features.packing.sizing.demand.profiles import COLUMNS
from gpuplan.features.packing.sizing.demand.tables import MAX_COLUMNS
from gpuplan.features.packing.sizing.needs import Need, Throughput
from tests.platforms import a_platform, pool, tenant

HEAD = "apiVersion: gpuplan.dev/v1\nkind: Demand\nmetadata: {name: asked}\nspec:\n"
PROFILE = b"""Mig instance,Batch size,Workload Number,Throughput,Latency
1,1,1,74.408,0.013
1,1,2,52.42,0.019
1,32,1,0,0
2,8,1,N/A,N/A
"""


def a_demand(*needs: str, growth: str = "") -> bytes:
    said = f"  growth: {growth}\n" if growth else ""
    return (HEAD + said + "  needs:\n" + "".join(f"    - {{{need}}}\n" for need in needs)).encode()


def read(content: bytes, plan: Plan | None = None, name: str = "demand.yaml", **more: bytes) -> tuple[Need, ...]:
    needs, found = from_files({name: content, **more}, plan)
    assert [item.finding.headline for item in found] == []
    return needs


def wrong(content: bytes | str, plan: Plan | None = None, name: str = "demand.yaml") -> Diagnostic:
    data = content if isinstance(content, bytes) else dedent(content).encode()
    _, found = from_files({name: data}, plan)
    (only,) = found
    return only


def place(diagnostic: Diagnostic) -> tuple[int, int, str]:
    location = diagnostic.finding.at.locate()
    return location.span.start.line, location.span.start.column, location.part


# --- Documents ---------------------------------------------------------------------------------------------------


def test_team_pods_and_memory_are_enough() -> None:
    (need,) = read(a_demand("team: lab, pods: 12, memory: 12Gi"))
    assert (need.team, need.name, need.pods, need.memory_mib) == ("lab", "lab", 12, 12288)
    assert (need.compute, need.gpus, need.isolation) == (Fraction(0), 0, Isolation.HARDWARE)
    assert (need.models, need.service, need.today) == ((), None, None)
    assert need.at is not None
    assert place_of(need) == 6


def place_of(need: Need) -> int:
    assert need.at is not None
    return need.at.locate().span.start.line


def test_everything_that_can_be_said() -> None:
    (need,) = read(
        a_demand(
            "team: Vision, tenant: vision-lab, name: video, pods: 4, memory: 6500Mi, compute: 25%, computeOf: "
            "H100-80GB, isolation: mps, engines: {dec: 1, jpeg: 1}, models: [H100-80GB, A100-80GB]"
        )
    )
    assert (need.team, need.name, need.pods, need.memory_mib) == ("vision-lab", "video", 4, 6500)
    assert (need.compute, need.isolation, need.models) == (Fraction(1, 4), Isolation.MPS, ("H100-80GB", "A100-80GB"))
    assert need.engines == {"dec": 1, "jpeg": 1}


def test_a_share_of_a_model_asks_for_that_model() -> None:
    (need,) = read(a_demand("team: a, pods: 1, memory: 1Gi, compute: 0.3, computeOf: H100-80GB"))
    assert (need.compute, need.models) == (Fraction(3, 10), ("H100-80GB",))


@pytest.mark.parametrize("said", ["gpus: 1", "isolation: wholeGpu"])
def test_a_gpu_of_its_own(said: str) -> None:
    (need,) = read(a_demand(f"team: a, pods: 3, {said}"))
    assert (need.gpus, need.compute, need.isolation, need.memory_mib) == (1, Fraction(1), Isolation.WHOLE_GPU, 0)


@pytest.mark.parametrize(
    ("said", "pods"),
    [
        ("pods: 10", 12),
        ("pods: 10, growth: 1.5", 15),
        ("pods: 10, growth: 0%", 10),
        ("pods: 10, burst: 20", 24),
        ("pods: 3", 4),
    ],
)
def test_growth_and_burst_are_counted_in(said: str, pods: int) -> None:
    """What is left over of a pod is one more; a burst has room of its own, and grows, too."""
    (need,) = read(a_demand(f"team: a, memory: 1Gi, {said}", growth="20%"))
    assert need.pods == pods


def test_several_documents_and_files() -> None:
    twice = a_demand("team: a, pods: 1, memory: 1Gi") + b"---\n" + a_demand("team: b, pods: 1, memory: 1Gi")
    needs, found = from_files({"one.yaml": twice, "two.csv": b"team,pods,memory\nc,1,1Gi\n"})
    assert ([need.team for need in needs], found) == (["a", "b", "c"], ())


def test_a_wrong_item_leaves_the_others() -> None:
    needs, found = from_files({"d.yaml": a_demand("team: a, pods: x, memory: 1Gi", "team: b, pods: 1, memory: 1Gi")})
    assert ([need.team for need in needs], [item.code for item in found]) == (["b"], ["GPU032"])
    assert place_of(needs[0]) == 7


def test_an_unknown_model_is_told_as_in_policies() -> None:
    found = wrong(a_demand("team: a, pods: 1, memory: 1Gi, models: [H100]"))
    assert (found.code, found.finding.message) == ("GPU102", "unknown GPU model `H100`")
    assert place(found)[0] == 6


# --- Teams and tenants -------------------------------------------------------------------------------------------

PLATFORM = a_platform(
    pool("mixed", "mig: {instances: {1g.10gb: 3, 2g.20gb: 2}}"),
    tenant("ml-research", "pool: mixed, unit: 1g.10gb, guaranteed: 3", "pool: mixed, unit: 2g.20gb, guaranteed: 1"),
)


@pytest.mark.parametrize(
    ("memory", "unit"), [("4Gi", ("mixed", "1g.10gb")), ("12Gi", ("mixed", "2g.20gb")), ("40Gi", None)]
)
def test_a_team_is_a_tenant_by_its_name_and_has_the_smallest_unit_that_holds_a_pod(
    memory: str, unit: tuple[str, str] | None
) -> None:
    (need,) = read(a_demand(f"team: ML Research, pods: 1, memory: {memory}"), PLATFORM)
    assert (need.team, need.today) == ("ml-research", unit)


def test_gpu822_a_team_that_is_no_tenant() -> None:
    needs, (found,) = from_files({"d.yaml": a_demand("team: ml-reserch, pods: 1, memory: 1Gi")}, PLATFORM)
    assert (found.code, found.severity, found.finding.label) == ("GPU822", "warning", "did you mean `ml-research`")
    assert found.finding.help == "write `tenant: ml-research`"
    assert [need.team for need in needs] == ["ml-reserch"]


def test_gpu822_a_team_without_a_tenant_is_called_as_one_may_be() -> None:
    needs, (found,) = from_files({"d.yaml": a_demand("team: Vision & Co, pods: 1, memory: 1Gi")}, PLATFORM)
    assert (found.code, [need.team for need in needs]) == ("GPU822", ["vision-co"])


def test_gpu822_names_a_tenant_that_is_there() -> None:
    (need,) = read(a_demand("team: Anna's, tenant: ml-research, pods: 1, memory: 1Gi"), PLATFORM)
    assert need.team == "ml-research"


# --- What cannot be counted --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "label", "help_", "nearest"),
    [
        ("pods: 1", "no `memory`", "add `memory: 12Gi`, or `gpus: 1`", "pods: 1, gpus: 1"),
        ("pods: 1, memory: 12", "bytes, for it has no unit", "write `12Gi` or `12Mi`", "pods: 1, memory: 12Gi"),
        ("pods: 1, memory: 900k", "too small for any program", "write `12Gi` or `12Mi`", "pods: 1, memory: 1Mi"),
        (
            "pods: 1, gpus: 2, isolation: mps",
            "beside `gpus: 2`",
            "remove `isolation`, or `gpus`",
            "pods: 1, gpus: 2, isolation: wholeGpu",
        ),
        ("pods: 1, gpus: 2, compute: 50%", "beside `gpus: 2`", "remove `compute`", "pods: 1, gpus: 2, compute: 100%"),
        (
            "pods: 1, isolation: wholeGpu, compute: 0.5",
            "beside `isolation: wholeGpu`",
            "remove `compute`",
            "pods: 1, isolation: wholeGpu",
        ),
        (
            "pods: 1, memory: 1Gi, computeOf: H100-80GB",
            "no `compute`",
            "add `compute: 25%`, or say `models` for the models that will do",
            "pods: 1, memory: 1Gi, compute: 25%, computeOf: H100-80GB",
        ),
        (
            "pods: 1, memory: 1Gi, compute: 0%",
            "nothing",
            "remove `compute`: any part will do",
            "pods: 1, memory: 1Gi, compute: 1%",
        ),
        (
            "pods: 9, memory: 1Gi, burst: 3",
            "the most at once",
            "write the number of all pods at the worst time, such as 12",
            "pods: 9, memory: 1Gi, burst: 9",
        ),
        (
            "burst: 3, service: {requestsPerSecond: 9, throughput: [{size: 1, requestsPerSecond: 10, latency: 20ms}]}",
            "counts pods",
            "remove `burst`; `requestsPerSecond` is that of the busiest time",
            "service: {requestsPerSecond: 9, throughput: [{size: 1, requestsPerSecond: 10, latency: 20ms}]}",
        ),
    ],
)
def test_gpu823_what_cannot_be_counted(said: str, label: str, help_: str, nearest: str) -> None:
    found = wrong(a_demand(f"team: a, {said}"))
    assert (found.code, found.finding.label, found.finding.help) == ("GPU823", label, help_)
    assert len(read(a_demand(f"team: a, {nearest}"))) == 1


def test_pods_or_a_service() -> None:
    found = wrong(a_demand("team: a, memory: 1Gi"))
    assert (found.code, found.finding.message) == ("GPU034", "what a team asks for is missing")


# --- Services ----------------------------------------------------------------------------------------------------


def a_service(said: str = "", throughput: str = "profiles/bert.csv") -> bytes:
    return a_demand(f"team: a, service: {{requestsPerSecond: 100, throughput: {throughput}{said}}}", growth="10%")


def test_a_service_with_what_was_measured_in_a_table_beside() -> None:
    files = {"teams/q3.yaml": a_service(", latency: 40ms, maxProcesses: 3"), "teams/profiles/bert.csv": PROFILE}
    (need,), found = from_files(files)
    assert (found, need.pods, need.service is not None) == ((), 0, True)
    assert need.service is not None
    assert need.service.requests_per_second == pytest.approx(110)
    assert (need.service.latency_ms, need.service.max_processes) == (40, 3)
    assert need.service.measured == (Throughput(1, 1, 1, 74.408, 13), Throughput(1, 1, 2, 104.84, 19))


def test_a_service_with_a_list() -> None:
    (need,) = read(a_service(throughput="[{size: 2g.20gb, batch: 4, requestsPerSecond: 50, latency: 1.5s}]"))
    assert need.service is not None
    assert need.service.measured == (Throughput("2g.20gb", 4, 1, 50, 1500),)


def test_tables_beside_are_those_that_are_named_and_not_given() -> None:
    (table,) = tables_beside({"teams/q3.yaml": a_service()})
    assert (table.folder, table.path, table.place) == ("teams", "profiles/bert.csv", "teams/profiles/bert.csv")
    assert tables_beside({"teams/q3.yaml": a_service(), "teams/profiles/bert.csv": PROFILE}) == ()


@pytest.mark.parametrize("path", ["../secret.csv", "/etc/passwd", "a/../../b.csv"])
def test_a_table_is_beside_or_below(path: str) -> None:
    assert wrong(a_service(throughput=path)).code == "GPU033"
    assert tables_beside({"q3.yaml": a_service(throughput=path)}) == ()


def test_gpu824_a_table_that_is_not_there() -> None:
    found = wrong(a_service())
    assert (found.code, found.finding.message) == ("GPU824", "`profiles/bert.csv` is not among the files")


@pytest.mark.parametrize(
    ("said", "throughput", "message"),
    [
        (
            ", latency: 19ms",
            "[{size: 1, requestsPerSecond: 5, latency: 20ms}]",
            "no partition that was measured answers within 19ms",
        ),
        (
            ", maxProcesses: 1",
            "[{size: 1, processes: 2, requestsPerSecond: 5, latency: 20ms}]",
            "nothing was measured with at most 1 process",
        ),
        ("", "[{size: 2g.20, requestsPerSecond: 5, latency: 20ms}]", "`2g.20` is no MIG profile"),
    ],
)
def test_gpu824_what_was_measured_does_not_answer(said: str, throughput: str, message: str) -> None:
    found = wrong(a_service(said, throughput))
    assert (found.code, found.finding.message) == ("GPU824", message)


def test_gpu824_what_was_measured_just_answers() -> None:
    assert len(read(a_service(", latency: 20ms", "[{size: 1, requestsPerSecond: 5, latency: 20ms}]"))) == 1


def test_gpu824_a_row_of_a_profile_that_is_no_number() -> None:
    found = wrong(PROFILE + b"3,1,1,fast,0.01\n", name="bert.csv")
    assert (found.code, found.finding.message, place(found)) == (
        "GPU824",
        "`fast` is no throughput",
        (6, 7, "column Throughput"),
    )
    assert from_files({"bert.csv": PROFILE}) == ((), ())


# --- Tables ------------------------------------------------------------------------------------------------------


def test_a_table_says_what_a_document_says() -> None:
    table = (
        b"team,tenant,name,pods,memory,compute,computeOf,isolation,engines.dec,models,growth,burst\n"
        b"Vision,vision-lab,video,4,6500Mi,25%,H100-80GB,mps,1,H100-80GB A100-80GB,20%,9\n"
    )
    document = a_demand(
        "team: Vision, tenant: vision-lab, name: video, pods: 4, memory: 6500Mi, compute: 25%, computeOf: H100-80GB, "
        "isolation: mps, engines: {dec: 1}, models: [H100-80GB, A100-80GB], growth: 20%, burst: 9"
    )
    assert [said(need) for need in read(table, name="q3.csv")] == [said(need) for need in read(document)]


def said(need: Need) -> tuple[object, ...]:
    return tuple(getattr(need, name) for name in Need.__match_args__ if name != "at")


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfteam;pods;memory;compute\r\nlab;12;8Gi;0,25\r\n;;;\r\n",
        b"sep=;\r\nteam;pods;memory;compute\r\nlab;12;8Gi;0,25\r\n",
        b"team\tpods\tmemory\tcompute\nlab\t12\t8Gi\t0.25\n",
        b'team,pods,memory,compute,\n"lab", 12 ,8Gi,25%,\n\n',
    ],
    ids=["bom-crlf", "excel-hint", "tabs", "quotes-blanks-trailing-comma"],
)
def test_tables_are_read_as_spreadsheets_write_them(content: bytes) -> None:
    (need,) = read(content, name="q3.csv")
    assert (need.team, need.pods, need.memory_mib, need.compute) == ("lab", 12, 8192, Fraction(1, 4))


@pytest.mark.parametrize(
    ("content", "message", "where"),
    [
        (b"team,pods,memry\nlab,1,1Gi\n", "unknown column `memry`", (1, 11, "")),
        (b"team,pods,pods\nlab,1,1\n", "column `pods` is there twice", (1, 6, "")),
        (b"pods,memory\n1,1Gi\n", "table has no column `team`", (1, 1, "")),
        (b"team,pods,memory\nlab,1,1Gi,0,25\n", "row has 5 cells, and the table 3 columns", (2, 1, "")),
        (b'team,pods,memory\n"lab,1,1Gi\nlab,2,1Gi\n', "row cannot be read: unexpected end of data", (2, 1, "")),
    ],
)
def test_gpu821_tables_that_cannot_be_read(content: bytes, message: str, where: tuple[int, int, str]) -> None:
    found = wrong(content, name="q3.csv")
    assert (found.code, found.finding.message, place(found)) == ("GPU821", message, where)
    assert len(read(b"team,pods,memory\nlab,1,1Gi\n", name="q3.csv")) == 1


@pytest.mark.parametrize("cell", ["1.000", "1,000", "1_0", "\u0662"])
def test_a_number_that_may_mean_another_one_is_not_guessed(cell: str) -> None:
    found = wrong(f"team;pods;memory\nlab;{cell};8Gi\n".encode(), name="q3.csv")
    assert (found.finding.label, found.finding.help) == ("this is text", "write a whole number")


def test_a_line_break_in_a_cell_stays_one() -> None:
    assert wrong(b'team,pods,memory\n"la\nb",1,8Gi\n', name="q3.csv").code == "GPU033"


def test_a_table_without_rows_is_no_demand_of_nothing() -> None:
    assert wrong(b"team,pods,memory\n", name="q3.csv").finding.message == "table of demand has no rows"


def test_there_are_not_more_items_than_anybody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.features.packing.sizing.demand.asked.MOST_NEEDS", 3)
    one = {"q3.csv": b"team,pods,memory\nlab,1,8Gi\n"}
    needs, (found,) = from_files({**one, "q4.csv": b"team,pods,memory\n" + b"lab,x,y\n" * 4})
    assert (len(needs), found.finding.message, place(found)) == (1, "demand has more than 3 items", (4, 1, ""))
    assert len(from_files({**one, "q4.csv": b"team,pods,memory\n" + b"lab,1,8Gi\n" * 2})[0]) == 3


def test_a_document_with_more_items_than_anybody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.features.packing.sizing.demand.asked.MOST_NEEDS", 3)
    head = "apiVersion: gpuplan.dev/v1\nkind: Demand\nmetadata: {name: q3}\nspec:\n  needs:\n"
    item = "  - {team: lab, pods: 1, memory: 8Gi}\n"
    needs, (found,) = from_files({"q3.yaml": f"{head}{item}{item}---\n{head}{item}  - x\n".encode()})
    assert (len(needs), found.finding.message, place(found)) == (2, "demand has more than 3 items", (15, 5, ""))
    assert len(from_files({"q3.yaml": f"{head}{item}---\n{head}{item}{item}".encode()})[0]) == 3


def test_items_that_cannot_be_read_count_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.features.packing.sizing.demand.asked.MOST_NEEDS", 2)
    document = "apiVersion: gpuplan.dev/v1\nkind: Demand\nmetadata: {name: q3}\nspec: {needs: [x]}\n"
    _, found = from_files({"q3.yaml": "---\n".join([document] * 4).encode()})
    assert [item.code for item in found] == ["GPU032", "GPU032", "GPU003"]


@pytest.mark.parametrize(("columns", "is_refused"), [(MAX_COLUMNS, False), (MAX_COLUMNS + 1, True)])
def test_a_table_has_not_more_columns_than_anybody_reads(columns: int, is_refused: bool) -> None:
    header = ",".join(f"c{number}" for number in range(columns))
    _, found = from_files({"q3.csv": f"{header}\n1\n".encode()})
    assert ("table has more than 1,000 columns" in [item.finding.message for item in found]) == is_refused


def test_a_table_of_throughput_is_read_up_to_a_thousand_findings() -> None:
    rows = "x,1,1,1,1\n" * 2000
    _, found = from_files({"bert.csv": f"{','.join(COLUMNS)}\n{rows}".encode()})
    assert len(found) == 1001
    assert found[-1].finding.message == "file has 1,000 findings; the rest is not read"


def test_a_wrong_cell_is_told_at_its_place() -> None:
    found = wrong(b"team;pods;memory\nlab;12;8 GiB\n", name="q3.csv")
    assert (found.code, found.finding.message) == ("GPU033", "`memory` cannot be `8 GiB`")
    assert (found.finding.help, place(found)) == ("write `8Gi`", (2, 8, "column memory"))


def test_gpu820_a_file_without_demand() -> None:
    found = wrong(b"a,b\n1,2\n", name="x.csv")
    assert (found.code, found.finding.message) == ("GPU820", "`x.csv` says no demand")
    assert wrong(b"", name="x.csv").finding.message == "`x.csv` is empty"


def test_gpu820_a_document_of_another_kind() -> None:
    found = wrong("apiVersion: gpuplan.dev/v1\nkind: Pool\nmetadata: {name: a}\n")
    assert (found.code, found.finding.message, place(found)[0]) == (
        "GPU820",
        "document is a `Pool`, and no `Demand`",
        2,
    )


def test_a_demand_among_policies_is_told_where_it_belongs() -> None:
    (document,), _ = read_text("policies/q3.yaml", a_demand("team: a, pods: 1, memory: 1Gi").decode())
    (found,) = parse(document).diagnostics
    assert (found.code, found.finding.label) == ("GPU035", "no part of a platform")


# --- Hostile files -----------------------------------------------------------------------------------------------

SEEDS = (
    a_demand("team: a, pods: 1, memory: 1Gi, compute: 25%", growth="20%"),
    a_service(", latency: 40ms"),
    b"team;pods;memory;compute\r\nlab;12;8Gi;0,25\r\n",
    PROFILE,
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 6))] = draw(st.sampled_from(PIECES) | st.binary(max_size=4))
    return bytes(data)


PIECES = (
    b"9" * 40,
    b"1e999",
    b"nan",
    b".inf",
    b"-1",
    b"\x00",
    b"\x1b[31m",
    b'"',
    b";",
    b"\n",
    b"- ",
    b"{",
    b"9e99",
    b"%",
)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=80) | mutated())
def test_no_bytes_make_it_fall(data: bytes) -> None:
    needs, _ = from_files({"any": data, "profiles/bert.csv": PROFILE}, PLATFORM)
    assert all(need.pods > 0 or need.service is not None for need in needs)


@pytest.mark.parametrize("name", ["a.yaml", "a.csv"])
def test_a_huge_file_is_a_finding(name: str) -> None:
    files: Mapping[str, bytes] = {name: b"team,pods,memory\n" + b"lab,1,1Gi\n" * 900_000}
    _, (found,) = from_files(files)
    assert found.finding.message == "file is larger than 8 MiB"
