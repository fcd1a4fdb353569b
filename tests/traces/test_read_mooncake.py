import json

import pytest

from traces import TraceError, load


def rows(*objects: dict) -> str:
    return "".join(json.dumps(row) + "\n" for row in objects)


def row(timestamp: object = 0, prompt: object = 600, output: object = 7, ids: object = (0, 1), **more: object) -> dict:
    return {"timestamp": timestamp, "input_length": prompt, "output_length": output, "hash_ids": ids} | more


def test_milliseconds_lengths_and_prefix_blocks(write):
    trace = load(write(rows(row(3000), row(3000, 512, 1, [0]), row(5999.25, 1, 2000, [9]))))
    assert trace.arrival.tolist() == [0, 0, 2_999_250_000]
    assert (trace.prompt.tolist(), trace.output.tolist()) == ([600, 512, 1], [7, 1, 2000])
    assert (trace.hash_ids, trace.hash_block) == (((0, 1), (0,), (9,)), 512)
    assert (trace.report.format, trace.report.rows_in) == ("mooncake", 3)


@pytest.mark.parametrize(
    ("prompt", "ids", "need"), [(20, [0, 1], 1), (512, [], 1), (513, [0], 2), (1024, [0, 1, 2], 2)]
)
def test_the_number_of_ids_must_fit_the_prompt(write, prompt, ids, need):
    with pytest.raises(TraceError) as refusal:
        load(write(rows(row(), row(0.2, prompt, 5, ids))))
    expected = f"{ids} must hold {need} ids, one for each 512 of {prompt} prompt tokens, not {len(ids)}"
    assert str(refusal.value).endswith(f"t.csv, line 2, column hash_ids: {expected}")


@pytest.mark.parametrize(
    ("ids", "rule"),
    [
        ("0,1", "must be a list of integers"),
        (None, "must be a list of integers"),
        ([0, True], "must hold integers of 64 bits only"),
        ([0, 1.5], "must hold integers of 64 bits only"),
        ([0, 1 << 64], "must hold integers of 64 bits only"),
    ],
)
def test_ids_are_lists_of_integers(write, ids, rule):
    with pytest.raises(TraceError, match=f"line 1, column hash_ids: .* {rule}"):
        load(write(rows(row(ids=ids))))


def test_hash_ids_may_be_absent_from_all_rows_when_the_format_is_named(write):
    plain = {"timestamp": 5, "input_length": 600, "output_length": 7}
    trace = load(write(rows(plain, plain)), format="mooncake")
    assert (trace.hash_ids, trace.hash_block, trace.arrival.tolist()) == (None, None, [0, 0])
    with pytest.raises(TraceError, match="line 1, column hash_ids: None is missing"):
        load(write(rows(plain, row())))
    with pytest.raises(TraceError, match="plain numbers, their unit is not guessed"):
        load(write(rows(plain)))


def test_tenant_and_another_unit_can_be_named(write):
    columns = {"tenant": "user", "arrival": "timestamp"}
    trace = load(write(rows(row(1, user="ann"), row(2, user=7))), columns=columns, unit="s")
    assert (trace.tenant, trace.arrival.tolist(), trace.hash_block) == (("ann", "7"), [0, 10**9], 512)


def test_sorting_keeps_each_rows_own_blocks(write):
    trace = load(write(rows(row(9, 1, 1, [5], tenant="late"), row(4, 1, 1, [6], tenant="early"))))
    assert (trace.hash_ids, trace.tenant, trace.report.out_of_order) == (((6,), (5,)), ("early", "late"), 1)
