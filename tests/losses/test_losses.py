"""Losses are pure functions of (seed, t): the same bits in any order, alone or in a block."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import advmdp as am
from advmdp.core.streams import stream_key, uniforms
from tests.helpers.strategies import build_mdp, random_policy

MDP = am.MDP.random([1, 3, 4, 1], actions=3, seed=0, branching=2)
SK = MDP.skeleton
N = SK.num_transitions
POLICIES = [random_policy(SK, np.random.default_rng(t)) for t in range(60)]

MAKERS: dict[str, Callable[..., am.losses.Losses]] = {
    "stochastic": lambda seed, d: am.losses.Stochastic(SK, seed=seed, dimensions=d),
    "switching": lambda seed, d: am.losses.Switching(SK, period=7, seed=seed, contexts=3, dimensions=d),
    "stochastic without noise": lambda seed, d: am.losses.Stochastic(SK, seed=seed, noise=0.0, dimensions=d),
    "switching every episode": lambda seed, d: am.losses.Switching(SK, period=1, seed=seed, dimensions=d),
    "seasonal": lambda seed, d: am.losses.Seasonal(SK, seed=seed, dimensions=d),
    "drifting": lambda seed, d: am.losses.Drifting(SK, period=9, seed=seed, noise=0.3, dimensions=d),
    "adaptive": lambda seed, d: am.losses.Adaptive(SK, seed=seed, memory=3, dimensions=d),
    "replay": lambda seed, d: am.losses.Replay(
        SK, np.random.default_rng(seed).random((60, N) if d is None else (60, N, d)), dimensions=d
    ),
}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@makers
@given(seed=st.integers(0, 2**64), order=st.permutations(range(20)), d=st.sampled_from([None, 1, 2]))
def test_any_order_gives_the_same_bytes(make: Callable, seed: int, order: list[int], d: int | None) -> None:
    block = make(seed, d).block(0, 20, POLICIES)
    again = make(seed, d)
    assert block.shape == ((20, N) if d is None else (20, N, d))
    assert block.dtype == np.float64
    assert (block >= 0).all()
    assert (block <= 1).all()
    for t in order:
        assert again.at(t, POLICIES).tobytes() == block[t].tobytes()


@makers
@given(cuts=st.lists(st.integers(0, 60), max_size=4))
def test_blocks_may_be_cut_anywhere(make: Callable, cuts: list[int]) -> None:
    sequence = make(3, None)
    edges = [0, *sorted(cuts), 60]
    parts = [sequence.block(first, stop, POLICIES) for first, stop in pairwise(edges)]
    assert np.concatenate(parts).tobytes() == sequence.block(0, 60, POLICIES).tobytes()


@makers
def test_another_seed_is_another_sequence(make: Callable) -> None:
    assert (make(0, None).at(5, POLICIES) != make(1, None).at(5, POLICIES)).any()


@makers
def test_dimensions_are_losses_of_their_own(make: Callable) -> None:
    both = make(0, 2).block(0, 20, POLICIES)
    assert (both[..., 0] != both[..., 1]).any()


def test_noise_is_as_wide_as_asked_for() -> None:
    block = am.losses.Stochastic(SK, seed=0, means=np.full(N, 0.4), noise=0.5).block(0, 500)
    assert np.abs(block - 0.4).max() <= 0.5 * 0.4
    assert np.abs(block - 0.4).max() > 0.499 * 0.4


@makers
def test_writing_to_a_returned_loss_does_not_change_the_sequence(make: Callable) -> None:
    sequence = make(0, None)
    first = sequence.at(4, POLICIES).copy()
    handed = sequence.at(4, POLICIES)
    handed[:] = -1.0
    assert (sequence.at(4, POLICIES) == first).all()


@makers
@pytest.mark.parametrize(("first", "stop"), [(-1, 2), (5, 4)])
def test_episodes_out_of_range_are_errors(make: Callable, first: int, stop: int) -> None:
    with pytest.raises(am.InputError, match="episode"):
        make(0, None).block(first, stop, POLICIES)


def test_losses_of_distant_episodes_are_pure_functions_too() -> None:
    sequence = am.losses.Drifting(SK, period=1000, seed=1, noise=0.1)
    t = 10**12
    assert sequence.at(t).tobytes() == sequence.block(t - 2, t + 2)[2].tobytes()


def test_stochastic_losses_are_independent_around_their_means() -> None:
    means = np.linspace(0.0, 1.0, N)
    block = am.losses.Stochastic(SK, seed=0, means=means).block(0, 20_000)
    width = np.minimum(means, 1 - means) / np.sqrt(3 * 20_000)
    assert (np.abs(block.mean(axis=0) - means) <= 5 * width + 1e-12).all()
    lively = slice(1, N - 1)
    lagged = [np.corrcoef(block[:-1, i], block[1:, i])[0, 1] for i in range(N)[lively]]
    between = np.corrcoef(block[:, lively].T) - np.eye(N - 2)
    assert np.abs(lagged).max() < 5 / np.sqrt(20_000)
    assert np.abs(between).max() < 5 / np.sqrt(20_000)


def test_means_may_be_given_per_pair_and_are_checked() -> None:
    per_pair = np.linspace(0, 1, SK.num_pairs)
    assert (am.losses.Stochastic(SK, means=per_pair).means == SK.over_transitions(per_pair)).all()
    with pytest.raises(am.InputError, match="shape"):
        am.losses.Stochastic(SK, means=np.zeros(3))
    with pytest.raises(am.InputError, match="means at layer 0, state 0, action 0"):
        am.losses.Stochastic(SK, means=np.full(N, 1.5))


@pytest.mark.parametrize("period", [1, 5])
def test_the_best_policy_switches_in_every_state_with_a_choice(period: int) -> None:
    world = build_mdp([1, 3, 4, 1], np.random.default_rng(4), 4, zeros=False)
    sk = world.skeleton
    choices = np.diff(sk.pair_ptr)[sk.state_of_pair]
    assert set(choices) == {1, 2, 3, 4}
    sequence = am.losses.Switching(sk, period=period, seed=2, contexts=3)
    means = sequence.expected(0, 12 * period)
    best = [am.best_response(world, means[t]) for t in range(0, 12 * period, period)]
    for (one, value), (two, _) in pairwise(best):
        assert value == pytest.approx(sk.num_layers * 0.1)
        assert (one * two)[choices > 1].max() == 0
    for t in range(12 * period):
        assert (am.best_response(world, means[t])[0] == best[t // period][0]).all()
    used = sum(policy for policy, _ in best) > 0
    assert (np.add.reduceat(used, sk.pair_ptr[:-2]) == np.minimum(3, np.diff(sk.pair_ptr)[:-1])).all()


def test_the_gap_is_the_one_asked_for() -> None:
    means = am.losses.Switching(SK, period=2, gap=0.4, noise=0.0).at(0)
    assert set(means.round(12)) == {0.3, 0.7}


def test_seasons_come_back_in_their_order() -> None:
    week = am.losses.Seasonal(SK, seed=3, noise=0.0).block(0, 30)
    assert (week[7:] == week[:-7]).all()
    assert len(np.unique(week, axis=0)) == 7
    year = am.losses.Seasonal(SK, period=10, seasons=4, seed=3, noise=0.0).block(0, 20)
    assert (year[10:] == year[:10]).all()
    changes = np.flatnonzero((np.diff(year[:10], axis=0) != 0.0).any(axis=1)) + 1
    assert changes.tolist() == [3, 5, 8]
    by_pair = np.split(week[0], SK.transition_ptr[1:-1])
    assert all(len(set(row)) == 1 for row in by_pair)
    assert len(np.unique(am.losses.Seasonal(SK, period=2, seasons=1, noise=0.0).block(0, 9), axis=0)) == 1


def test_drifting_moves_slowly_and_far() -> None:
    period = 50
    block = am.losses.Drifting(SK, period=period, seed=3).block(0, 1000)
    steps = np.abs(np.diff(block, axis=0))
    assert steps.max() <= 1.5 / period + 1e-12
    assert (block.max(axis=0) - block.min(axis=0)).min() > 0.5
    bends = np.abs(np.diff(block, n=2, axis=0))
    assert bends.max() <= 12.0 / period**2 + 1e-12


def test_adaptive_punishes_what_was_preferred_and_nothing_later() -> None:
    sequence = am.losses.Adaptive(SK, seed=0, strength=1.0, memory=1, noise=0.0)
    assert (sequence.at(9, {8: POLICIES[8]}) == SK.over_transitions(POLICIES[8])).all()
    weak = am.losses.Adaptive(SK, seed=0, strength=0.0, noise=0.0)
    assert (weak.at(9, {8: POLICIES[8]}) == weak.base).all()
    longer = am.losses.Adaptive(SK, seed=0, strength=1.0, memory=4, noise=0.0)
    expected = SK.over_transitions(np.mean(POLICIES[5:9], axis=0))
    np.testing.assert_allclose(longer.at(9, POLICIES), expected, rtol=1e-14)
    assert (longer.at(1, POLICIES) == SK.over_transitions(POLICIES[0])).all()
    assert (longer.at(0) == SK.over_transitions(am.uniform_policy(SK))).all()


@given(t=st.integers(0, 30), later=st.integers(0, 29))
def test_adaptive_reads_only_the_last_policies_before_the_episode(t: int, later: int) -> None:
    sequence = am.losses.Adaptive(SK, seed=5, memory=3)
    told = {s: POLICIES[s] for s in range(max(0, t - 3), t)}
    assert sequence.memory == 3
    assert sequence.at(t, told).tobytes() == sequence.at(t, {**dict(enumerate(POLICIES)), **told}).tobytes()
    told[t + later] = POLICIES[0] * np.nan
    assert np.isfinite(sequence.at(t, told)).all()


def test_adaptive_names_the_missing_policy() -> None:
    sequence = am.losses.Adaptive(SK, seed=0, memory=2)
    sequence.at(0)
    with pytest.raises(am.InputError, match="policies: none.*episodes 3 to 4"):
        sequence.at(5)
    with pytest.raises(am.InputError, match="nothing for episode 4"):
        sequence.at(5, {3: POLICIES[3]})
    with pytest.raises(am.InputError, match="policy.*shape"):
        sequence.at(1, [POLICIES[0][1:]])


@pytest.mark.parametrize(
    "bad",
    [
        lambda: am.losses.Switching(SK, period=0),
        lambda: am.losses.Switching(SK, period=1, contexts=1),
        lambda: am.losses.Switching(SK, period=1, gap=1.5),
        lambda: am.losses.Drifting(SK, period=0),
        lambda: am.losses.Seasonal(SK, period=0),
        lambda: am.losses.Seasonal(SK, period=7, seasons=8),
        lambda: am.losses.Adaptive(SK, strength=-0.1),
        lambda: am.losses.Adaptive(SK, memory=0),
        lambda: am.losses.Stochastic(SK, noise=2.0),
        lambda: am.losses.Stochastic(SK, noise=np.nan),
        lambda: am.losses.Stochastic(SK, seed=-1),
        lambda: am.losses.Stochastic(SK, dimensions=0),
        lambda: am.losses.Stochastic(SK, dimensions=1.5),
        lambda: am.losses.Stochastic(SK, noise="much"),
        lambda: am.losses.Stochastic(MDP),
        lambda: am.losses.Switching(SK, period=np.inf),
        lambda: am.losses.Switching(SK, period=2.0),
    ],
)
def test_parameters_are_checked(bad: Callable) -> None:
    with pytest.raises(am.InputError):
        bad()


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[[np.ndarray, str], Path]:
    """Writes rows to a file of the given ending."""

    def write(rows: np.ndarray, ending: str) -> Path:
        path = tmp_path / f"costs.{ending}"
        frame = pl.DataFrame(rows, schema=[f"c{i}" for i in range(rows.shape[1])], orient="row")
        frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
        return path

    return write


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("d", [None, 3])
def test_files_replay_what_arrays_do(recorded: Callable, ending: str, d: int | None) -> None:
    rows = np.random.default_rng(0).random((40, N * (d or 1)))
    path = recorded(rows, ending)
    array = am.losses.Replay(SK, rows, dimensions=d)
    for source in (path, str(path)):
        file = am.losses.Replay(SK, source, dimensions=d)
        assert file.episodes == 40
        assert file.block(0, 40).tobytes() == array.block(0, 40).tobytes()
        assert file.at(31).tobytes() == array.at(31).tobytes()
        assert file.at(2).tobytes() == rows[2].tobytes()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_large_file_is_kept_on_disk_and_read_in_any_order(
    recorded: Callable, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("advmdp.losses.reading.STRETCH", 7 * N)
    rows = np.random.default_rng(0).random((50, N))
    path = recorded(rows, ending)
    file = am.losses.Replay(SK, path)
    path.unlink()  # what was checked is what is played, whatever becomes of the file
    assert isinstance(file._recording.rows.base, np.memmap)
    for t in (0, 49, 6, 7, 48, 20):
        assert (file.at(t) == rows[t]).all()
    assert (file.block(3, 47) == rows[3:47]).all()


def test_rows_over_pairs_hold_for_all_successors() -> None:
    rows = np.random.default_rng(0).random((5, SK.num_pairs))
    assert (am.losses.Replay(SK, rows).at(3) == SK.over_transitions(rows[3])).all()
    both = np.random.default_rng(0).random((5, SK.num_pairs, 2))
    assert (am.losses.Replay(SK, both, dimensions=2).at(3) == SK.over_transitions(both[3])).all()


def test_raw_costs_are_rescaled_by_one_affine_map() -> None:
    costs = np.random.default_rng(0).uniform(-40, 160, (30, N))
    by_range = am.losses.Replay(SK, costs, rescale="range")
    assert by_range.block(0, 30).min() == 0.0
    assert by_range.block(0, 30).max() == 1.0
    given_bounds = am.losses.Replay(SK, costs, rescale=(-100, 200))
    np.testing.assert_allclose(given_bounds.at(3), (costs[3] + 100) / 300, rtol=1e-14)
    assert (am.losses.Replay(SK, costs, rescale=np.array([-100, 200])).at(3) == given_bounds.at(3)).all()
    with pytest.raises(am.InputError, match="expected a number from -10 to 10"):
        am.losses.Replay(SK, costs, rescale=(-10, 10))


@pytest.mark.parametrize("kind", [am.losses.Switching, am.losses.Seasonal, am.losses.Drifting])
@pytest.mark.parametrize("period", [0, 1.5, "3", 10**30])
def test_a_period_that_cannot_be_counted_is_refused(kind: type, period: object) -> None:
    with pytest.raises(am.InputError, match="^period: "):
        kind(am.Skeleton.dense([1, 2, 1], 2), period=period)


def test_a_memory_map_is_not_read_into_memory(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).random((50, N))
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    sequence = am.losses.Replay(SK, mapped)
    assert sequence._recording.rows is mapped
    assert (sequence.at(17) == rows[17]).all()


def test_an_array_changed_after_it_was_checked_does_not_change_the_replay() -> None:
    rows = np.full((3, N), 0.5)
    sequence = am.losses.Replay(SK, rows)
    rows[:] = 7.0
    assert (sequence.at(1) == 0.5).all()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("value", [1.5, -0.1, np.nan, np.inf])
def test_a_cost_out_of_range_is_named_by_its_place(recorded: Callable, ending: str, value: float) -> None:
    rows = np.full((20, N), 0.5)
    rows[12, 4] = value
    with pytest.raises(am.InputError) as caught:
        am.losses.Replay(SK, recorded(rows, ending))
    place = "line 14" if ending == "csv" else "row 12"
    assert f"{place}, column c4" in caught.value.where
    assert str(value).lower() in caught.value.given.lower()


def test_words_in_a_csv_are_named_by_their_line(recorded: Callable) -> None:
    path = recorded(np.full((5, N), 0.5), "csv")
    lines = path.read_text().splitlines()
    lines[3] = lines[3].replace("0.5", "oops", 1)
    path.write_text("\n".join(lines))
    with pytest.raises(am.InputError, match="line 4, column c0: 'oops'"):
        am.losses.Replay(SK, path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere.csv", "no such file"),
        (__file__, "ends in '.py'"),
        (np.zeros((4, 3)), "shape"),
        (np.ma.masked_array(np.zeros((4, N))), "mask"),
        (np.zeros(N), "shape"),
        (np.zeros((0, N)), "shape"),
        (np.zeros((4, N), complex), "type complex"),
    ],
)
def test_invalid_recordings_are_errors(source: object, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        am.losses.Replay(SK, source)  # type: ignore[arg-type]


def test_broken_files_are_errors(tmp_path: Path) -> None:
    for name, content in (("a.parquet", b"not parquet"), ("b.csv", b""), ("c.csv", b"x,y\n")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(am.InputError, match=name):
            am.losses.Replay(SK, tmp_path / name)


def test_the_end_of_a_recording_is_an_error() -> None:
    sequence = am.losses.Replay(SK, np.zeros((4, N)))
    with pytest.raises(am.InputError, match="stop <= 4"):
        sequence.at(4)
    with pytest.raises(am.InputError, match="rescale"):
        am.losses.Replay(SK, np.zeros((4, N)), rescale=(1.0, 1.0))
    with pytest.raises(am.InputError, match=r"costs from 0\.0 to 0\.0"):
        am.losses.Replay(SK, np.zeros((4, N)), rescale="range")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_named_as_the_skeleton_names_them_may_come_in_any_order(tmp_path: Path, ending: str) -> None:
    rng = np.random.default_rng(0)
    for d, labels in (
        (None, [SK.pair_label(p) for p in range(SK.num_pairs)]),
        (None, [SK.transition_label(i) for i in range(N)]),
        (2, [f"{SK.pair_label(p)}:{j}" for p in range(SK.num_pairs) for j in range(2)]),
    ):
        rows = rng.random((6, len(labels)))
        order = rng.permutation(len(labels))
        frame = pl.DataFrame(rows[:, order], schema=[labels[k] for k in order], orient="row")
        path = tmp_path / f"named.{ending}"
        frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
        expected = am.losses.Replay(SK, rows, dimensions=d)
        assert am.losses.Replay(SK, path, dimensions=d).block(0, 6).tobytes() == expected.block(0, 6).tobytes()
        frame.rename({labels[order[0]]: "typo"}).write_csv(tmp_path / "typo.csv")
        with pytest.raises(am.InputError, match="header: column 'typo'"):
            am.losses.Replay(SK, tmp_path / "typo.csv", dimensions=d)


@pytest.mark.parametrize("first", [np.linspace(0, 1, N), np.zeros(N), np.arange(N)], ids=["any", "equal", "running"])
def test_a_file_without_a_header_line_is_an_error(tmp_path: Path, first: np.ndarray) -> None:
    path = tmp_path / "costs.csv"
    np.savetxt(path, np.stack([first, first]), delimiter=",")
    with pytest.raises(am.InputError, match="line 1: numbers; expected a header line"):
        am.losses.Replay(SK, path)


def test_labels_are_found_where_pairs_and_transitions_are_equally_many(tmp_path: Path) -> None:
    sk = am.MDP.from_steps([("home", "bus", "work", 1.0), ("home", "walk", "work", 1.0)]).skeleton
    for header in ("home/walk,home/bus", "home/walk/work,home/bus/work"):
        (tmp_path / "costs.csv").write_text(f"{header}\n0.1,0.9\n")
        assert am.losses.Replay(sk, tmp_path / "costs.csv").at(0).tolist() == [0.9, 0.1]


def test_a_csv_as_people_write_it(tmp_path: Path) -> None:
    """Padded numbers, Windows line ends, a blank line at the end, a name that a shell would expand."""
    path = tmp_path / "c[1]?.csv"
    header = ",".join(f"c{i}" for i in range(N))
    path.write_bytes(("\r\n".join([header, ",".join([" 0.5 "] * N), ",".join(["1"] * N), "", ""])).encode())
    sequence = am.losses.Replay(SK, path)
    assert sequence.episodes == 2
    assert sequence.at(0).tolist() == [0.5] * N


def test_a_parquet_column_that_is_no_number_is_named(tmp_path: Path) -> None:
    frame = pl.DataFrame(np.zeros((3, N)), schema=[f"c{i}" for i in range(N)])
    frame.with_columns(pl.lit("2024-01-01").str.to_date().alias("c3")).write_parquet(tmp_path / "dates.parquet")
    with pytest.raises(am.InputError, match="column c3: values of type Date"):
        am.losses.Replay(SK, tmp_path / "dates.parquet")


@pytest.mark.parametrize(
    "rescale", ["auto", (0,), 5, (0, np.inf), (0, 1, 500), ("a", "b"), (2, 1), {}, True, (-1e308, 1e308)]
)
def test_rescale_is_checked(rescale: object) -> None:
    with pytest.raises(am.InputError, match="rescale"):
        am.losses.Replay(SK, np.zeros((4, N)), rescale=rescale)  # type: ignore[arg-type]


@makers
@pytest.mark.parametrize("t", [1.0, "3", None, [1], True])
def test_an_episode_is_a_whole_number(make: Callable, t: object) -> None:
    with pytest.raises(am.InputError, match="episode"):
        make(0, None).at(t, POLICIES)


@makers
@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int32, np.uint64])
def test_every_kind_of_whole_number_is_the_same_episode(make: Callable, kind: type) -> None:
    assert make(0, None).at(kind(50), POLICIES).tobytes() == make(0, None).at(50, POLICIES).tobytes()


@pytest.mark.parametrize("t", [2**63, 2**64 + 3])
def test_no_episode_is_too_far(t: int) -> None:
    for make in (MAKERS["stochastic"], MAKERS["switching"], MAKERS["seasonal"], MAKERS["drifting"]):
        assert np.isfinite(make(0, None).at(t)).all()


def test_cycles_work_with_many_different_numbers_of_actions() -> None:
    """The cycle of states with 1 to 40 actions is longer than a 64-bit integer; no episode is out of reach for it."""
    counts = np.arange(1, 41)
    state = np.repeat(np.arange(1, 41), counts)
    action = np.concatenate([np.arange(n) for n in counts])
    rows = ([*[0] * 40, *state], [*[0] * 40, *action], [*range(1, 41), *[41] * len(state)])
    sk = am.Skeleton.sparse([1, 40, 1], *rows)
    sequence = am.losses.Switching(sk, period=1, contexts=40, noise=0.0)
    for t in (0, 2**63, 2**80):
        now, then = sequence.block(t, t + 2) < 0.5
        good = np.add.reduceat(now[40:], np.concatenate([[0], np.cumsum(counts)[:-1]]))
        assert (good == 1).all()
        assert not (now & then)[41:].any()


@pytest.mark.parametrize("factor", [9.0, -1.0, np.nan])
def test_adaptive_refuses_anything_but_policies(factor: float) -> None:
    with pytest.raises(am.ModelError, match="a policy is a distribution"):
        am.losses.Adaptive(SK).at(1, [factor * POLICIES[0]])


def test_means_belong_to_the_sequence() -> None:
    mine = np.full(N, 0.5)
    sequence = am.losses.Stochastic(SK, means=mine, noise=0.0)
    mine[:] = 9.0
    assert (sequence.at(0) == 0.5).all()
    assert not sequence.means.flags.writeable


def test_the_repr_of_a_sequence_shows_its_parameters() -> None:
    assert repr(am.losses.Switching(SK, period=3)).startswith("Switching(noise=0.5, seed=0, period=3, contexts=2")


@given(st.integers(0, 2**64), st.integers(0, 10**15), st.integers(1, 9), st.integers(1, 9))
def test_streams_are_rows_on_a_counter(seed: int, first: int, count: int, width: int) -> None:
    key = stream_key(seed, "somewhere")
    rows = uniforms(key, first, count, width)
    assert rows.shape == (count, width)
    assert all((uniforms(key, first + i, 1, width)[0] == rows[i]).all() for i in range(count))


def test_streams_of_different_purposes_or_seeds_differ() -> None:
    keys = [stream_key(0, "a"), stream_key(0, "b"), stream_key(1, "a"), stream_key(0, "a", "b"), stream_key(0, "ab")]
    keys += [stream_key(0, "abcd", "efgh"), stream_key(0, "abcdefgh")]
    assert len({key.tobytes() for key in keys}) == len(keys)


def test_uniform_numbers_are_those_of_numpys_philox() -> None:
    key = stream_key(7, "check")
    expected = np.random.Generator(np.random.Philox(key=key)).random(40)
    assert (uniforms(key, 0, 10, 4).ravel() == expected).all()


def test_custom_losses_may_be_given_by_name() -> None:
    sk = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])
    losses = am.losses.FromFunction(sk, lambda t: {("home", "bus"): 0.1 * t, ("home", "walk"): 0.5})
    assert losses.block(0, 3).tolist() == [[0.0, 0.5], [0.1, 0.5], [0.2, 0.5]]
    with pytest.raises(am.InputError, match="walk"):
        am.losses.FromFunction(sk, lambda t: {("home", "bus"): 0.1}).at(0)


def test_custom_losses_are_a_function_of_the_episode() -> None:
    sk = am.Skeleton.dense([1, 2, 1], 2)
    mine = am.losses.FromFunction(sk, lambda t: np.full(sk.num_transitions, (t % 4) / 4))
    assert mine.block(3, 6).tolist() == [[0.75] * 8, [0.0] * 8, [0.25] * 8]
    with pytest.raises(am.InputError, match="function"):
        am.losses.FromFunction(sk, np.zeros(8))
    with pytest.raises(am.InputError, match=r"loss of episode 2: an array of shape \(3,\)"):
        am.losses.FromFunction(sk, lambda t: np.zeros(3)).at(2)


@pytest.mark.parametrize("dimensions", [None, 2])
def test_the_sum_of_the_noise_is_that_of_losses_minus_means(dimensions: int | None) -> None:
    sequence = am.losses.Stochastic(SK, seed=4, noise=0.7, dimensions=dimensions)
    noise = (sequence.block(3, 40) - sequence.means).sum(axis=0)
    found = sequence.noise_sums(3, 40) * np.minimum(sequence.means, 1.0 - sequence.means)
    assert np.allclose(found, noise, rtol=0.0, atol=1e-12)
    assert (sequence.noise_sums(3, 3) == 0.0).all()
