"""FasterTransformer's shape on worlds small enough to know every step of. A step lasts 10 ns unless said otherwise."""

from __future__ import annotations

import pytest
from worlds import Affine, play, play_both

from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.policies import FasterTransformer, StaticBatching

THREE = [(0, 4, 3), (0, 6, 1), (0, 2, 2)]


def test_the_first_iteration_ends_with_the_shortest_prompt_and_the_rest_goes_token_by_token() -> None:
    world = play_both(THREE, FasterTransformer(max_batch_size=3))
    assert world.log == [
        "0: 0+2 1+2 2+2 | emit 2",
        "10: 0+1 1+1 2+1 | emit 2",
        "20: 0+1 1+1 spent 1 | held 2 | emit 0",
        "30: 0+1 1+1 spent 1 | held 2 | emit 0",
        "40: 0+1 1+1 spent 1 | held 2 | emit 0 1 | leave 0 1 2",
    ]


def test_nobody_enters_or_leaves_before_the_longest_row_is_done() -> None:
    world = play_both([*THREE, (5, 3, 1)], FasterTransformer(max_batch_size=3))
    assert world.stays(3) == [(50, 60)]
    assert {world.left_at[index] for index in range(3)} == {50}


def test_a_row_that_is_done_costs_its_products_but_no_attention() -> None:
    world = play_both([(0, 5, 1), (0, 5, 3)], FasterTransformer(max_batch_size=2), cost=Affine(0, 100, 1, 1))
    assert world.record.ends.tolist() == [10, 10 + 200 + 5, 10 + 205 + 200 + 6], "only one row is read"


def test_equal_prompts_run_as_a_static_batch_does() -> None:
    rows = [(0, 5, 4), (0, 5, 4), (3, 5, 2)]
    ft, static = (play(rows, policy, exact=True) for policy in (FasterTransformer(max_batch_size=2),
                                                               StaticBatching(max_batch_size=2)))
    assert ft.log == static.log


def test_every_row_is_laid_out_for_the_models_length() -> None:
    world = play_both([(0, 5, 4)] * 5, FasterTransformer(), capacity=250, max_model_len=100)
    assert [len(tick.running) for tick in world.ticks if tick.admitted] == [2, 2, 1]
    assert world.record.used.max() == 200
    assert world.record.plan("promised").max() == 200


def test_a_row_is_as_long_as_it_is_told_to_be() -> None:
    for length, together in ((20, 3), (None, 1)):
        world = play([(0, 4, 2)] * 3, FasterTransformer(max_model_len=length), capacity=60, max_model_len=60)
        assert len(world.ticks[0].admitted) == together


def test_the_default_batch_is_what_memory_holds_at_the_models_length() -> None:
    assert FasterTransformer().resolve(Deployment(kv_capacity_tokens=1000, max_model_len=300)).slots == 3
    assert FasterTransformer(max_model_len=100).resolve(Deployment(kv_capacity_tokens=1000)).slots == 10
    assert FasterTransformer().resolve(Deployment()).slots == 32


@pytest.mark.parametrize("knobs", [{"max_batch_size": 0}, {"max_batch_size": "all"}, {"max_model_len": 0}])
def test_a_wrong_knob_is_one_line(knobs: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"\Aft: " + next(iter(knobs))) as error:
        FasterTransformer(**knobs)    # type: ignore[arg-type]
    assert "\n" not in str(error.value)
