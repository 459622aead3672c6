"""The command that checks the paper: its numbers are right, and it fails when a statement does."""

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import advmdp as am
from advmdp.core.streams import generator, stream_key, uniforms
from advmdp.learners import bounds
from advmdp.verify import coverage, dual
from advmdp.verify import learners as verify_learners
from advmdp.verify import paper as verify
from advmdp.verify import rows as verify_rows
from advmdp.verify.rows import Row
from tests.helpers.command_line import invoke
from tests.helpers.oracles import kl_projection, l1_rules, occupancy_variable

WORLD = verify.world()
SK = WORLD.skeleton
STATEMENTS = (
    "Lemma 4.1", "Theorem 4.2, corrected", "Theorem 4.2, printed", "Theorem 5.1", "Theorem 5.1, growth",
    "Theorem 5.2", "Theorem 5.3", "Theorem 5.3, first line", "Other learners", "SelfTuning",
)  # fmt: skip


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer problems and shorter games; what is run is the same."""
    for module, setting, value in (
        (verify, "SHORT", 300), (verify, "SEEDS", 1), (dual, "PROBLEMS", 6), (dual, "ORACLE_PROBLEMS", 2),
    ):  # fmt: skip
        monkeypatch.setattr(module, setting, value)
    monkeypatch.setattr(verify_learners, "SEEDS", 1)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_the_command_runs_every_statement_and_they_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    done = invoke("verify", "--episodes", "5000", "--runs", "40")
    assert done.exit_code == 0, done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    statements, whats = columns_of(done.stdout)
    for statement in STATEMENTS:
        assert statement in statements
    for criterion in ("TotalLoss", "WorstCase", "Risk"):
        for regret in ("R,", "R^APP,", "R^ON,"):
            assert f"{regret} {criterion}" in whats
    assert "FAILS" not in done.stdout
    assert "vacuous" in done.stdout  # the bound of Theorem 5.1 is above L T for so few episodes


def columns_of(text: str) -> tuple[str, str]:
    """The first two columns of the output, each as running text."""
    first, second = (slice(0, 14), slice(15, 42))
    return tuple(
        " ".join(" ".join(line[part].strip() for line in text.splitlines()).split()) for part in (first, second)
    )


def test_rows_come_into_a_pipe_as_they_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the next one is begun, the last one can be read at the other end."""
    row = Row("Lemma 4.1", "what was run for it", 1.0, "<=", 2.0, True, beside="more", basis="why")
    ends = os.pipe()
    seen: list[bytes] = []

    def slow(*_: object) -> Iterator[Row]:
        for _ in range(3):
            yield row
            seen.append(os.read(ends[0], 10**6))  # would wait for ever, were nothing written
            assert b"what was run for it" in seen[-1]

    monkeypatch.setattr(verify, "rows", slow)
    monkeypatch.setattr(verify, "guarantees", lambda *_: iter(()))
    monkeypatch.setattr(verify, "self_tuning", lambda *_: iter([replace(row, statement="SelfTuning")]))
    with os.fdopen(ends[1], "w") as pipe:
        assert verify.run(verify.Console(file=pipe), 5000, 1, 0)
    with os.fdopen(ends[0], "rb") as rest:
        text = b"".join([*seen, rest.read()]).decode()
    assert len(seen) == 3
    assert "SelfTuning" in text
    assert "all 4 hold" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_the_command_fails_when_a_statement_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "CRITERIA", (am.TotalLoss(),))
    monkeypatch.setattr(bounds, "approximation", lambda *_: 1.0)
    done = invoke("verify", "--episodes", "5000", "--runs", "5")
    assert done.exit_code == 1
    assert done.stdout.count("FAILS") == 1
    assert "1 of 50 FAIL" in done.stdout


def test_too_few_episodes_are_refused() -> None:
    assert invoke("verify", "--episodes", "4999").exit_code == 2
    with pytest.raises(am.InputError, match="episodes"):
        verify.run(verify.Console(), episodes=10)


def test_each_bound_is_compared_with_its_own_regret() -> None:
    T = 1000
    games = [verify.Account(T, 30.0, 10.0, 20.0, 0.0), verify.Account(T, 25.0, 20.0, 5.0, 0.0)]
    risk = am.Risk(0.25, 2.0)
    found = list(verify.against_bounds(SK, risk, games))
    assert [row.measured for row in found] == [30.0, 20.0, 20.0]
    F = risk.lipschitz(SK)
    X, A, L, log = 4, 2, 2, np.log(T * 4 * 2 / 0.05)
    assert found[0].claimed == pytest.approx(15 * F * L * X * np.sqrt(T * A * log))
    assert found[1].claimed == pytest.approx(
        3 * F * L * X * (2 * np.sqrt(T * np.log(L / 0.05)) + 3 * np.sqrt(T * A * log))
    )
    assert found[2].claimed == pytest.approx(2 * F * L * np.sqrt(2 * T * np.log(X * A / L)))
    for j, worst in enumerate(("total", "approximation", "online")):
        broken = list(verify.against_bounds(SK, risk, [*games, replace(games[0], **{worst: 1e9})]))
        assert [row.holds for row in broken] == [k != j for k in range(3)]


def test_a_run_of_the_lemma_counts_as_the_algorithm_does() -> None:
    """Inequality (3) at the start of every epoch, with counters kept here; narrower, it holds in some runs only.

    And the rows that the pointwise sets hold, counted one by one.
    """
    mdp = am.MDP.random([1, 4, 4, 1], 2, seed=0, branching=2)
    sk, T, delta = mdp.skeleton, coverage.COVERAGE_EPISODES, coverage.COVERAGE_DELTA
    losses = am.losses.Switching(sk, period=10, seed=0)
    outcomes = []
    for number in range(12):
        rng, learner = generator(0, "verify", "coverage", str(number)), am.UCOREPS(sk, horizon=T, delta=delta)
        seen, epoch, furthest, inside, tried = np.zeros(sk.num_transitions), 1, np.zeros(2), 0, 0
        for t in range(T):
            path = mdp.sample(learner.policy, rng)
            learner.update(path, losses.at(t))
            seen[path.transitions] += 1
            if learner.epochs == epoch:
                continue
            epoch = learner.epochs
            for p, (a, b) in enumerate(zip(sk.transition_ptr[:-1], sk.transition_ptr[1:], strict=True)):
                visits = seen[a:b].sum()
                layer = np.searchsorted(sk.layer_ptr, sk.state_of_pair[p], side="right") - 1
                counted = np.array([sk.layer_sizes[layer + 1], b - a])
                radii = np.sqrt(2 * counted * np.log(T * 10 * 2 / delta) / max(1, visits))
                if visits:
                    distance = np.abs(mdp.transition[a:b] - seen[a:b] / visits).sum()
                    furthest = np.maximum(furthest, distance / radii)
                    if b - a > 1:
                        likely = (seen[a:b] + 1 / (b - a)) / (visits + 1)
                        tried += 1
                        inside += distance <= np.sqrt(likely * (1 - likely) / visits).sum()
        found = coverage.covered(mdp, 0, number)
        held = found.runs
        assert found.rows[0].tolist() == [inside, tried]
        assert found.rows[1, 1] == 10 * (epoch - 1)  # of all pairs with two successors, in every epoch
        assert held[:2].tolist() == [[far <= 1.0, far <= 0.3] for far in furthest]
        outcomes.append(held[1, 1])
    assert 0 < sum(outcomes) < len(outcomes)


def test_the_learners_own_sets_are_the_ones_that_are_checked() -> None:
    sk, rng = SK, np.random.default_rng(0)
    names = [{"confidence": name} for name in ("weissman", "chernoff", "bernstein")]
    kinds = ({}, {"successors": "possible"}, *names)
    for options, kind in zip(kinds, coverage.KINDS, strict=True):
        learner = am.UCOREPS(sk, horizon=100, delta=0.2, **options)
        for t in range(30):
            learner.update(WORLD.sample(learner.policy, rng), am.losses.Stochastic(sk).at(t))
        roots = np.sqrt(np.maximum(1, learner.counts.visits))  # two pairs of this world have several successors
        log_term = np.log(2 / 0.2 * roots) if kind.all_times else np.log(100 * 4 * 2 / 0.2)
        checked = kind.make(sk, learner.counts, log_term, 1.0)
        for name in ("center", "radius", "lower", "upper"):
            assert np.array_equal(getattr(checked, name, None), getattr(learner.row_set, name, None))


@pytest.mark.parametrize(("k", "runs"), [(0, 10), (7, 10), (950, 1000)])
def test_a_share_fails_only_if_it_is_significantly_too_low(k: int, runs: int) -> None:
    held = np.arange(runs) < k
    limit = stats.binomtest(k, runs).proportion_ci(0.998, "exact").high
    assert verify_rows.share_limit(held) == pytest.approx(limit, rel=1e-9)
    assert verify_rows.share_of_runs("", "", held, limit - 1e-6, "").holds
    assert not verify_rows.share_of_runs("", "", held, limit + 1e-6, "").holds


def test_the_certificate_is_the_divergence_beyond_the_least() -> None:
    sk, log_weights, ball = dual.projection_problem(0, 1)
    r = am.project(sk, log_weights, ball)
    found = dual.certificate(r)
    assert max(found.formula, found.gap, found.outside) <= verify.EXACT
    q = occupancy_variable(sk)
    _, divergence, _ = kl_projection(sk, np.exp(log_weights), l1_rules(sk, q, ball.center, ball.radius), q)
    least = divergence + sk.num_layers - np.exp(log_weights).sum()  # D without its linear part
    assert dual.oracle(sk, log_weights, ball) == pytest.approx(least, abs=1e-6)
    assert r.q @ np.log(r.q / np.exp(log_weights)) - found.gap == pytest.approx(least, abs=1e-6)
    other = am.occupancy(am.MDP(sk, r.rows), am.uniform_policy(sk))
    worse = dual.certificate(replace(r, q=other, log_q=np.log(other)))
    assert worse.outside <= verify.EXACT
    assert worse.formula > 0.01
    assert worse.gap == pytest.approx(other @ (np.log(other) - log_weights) - least, abs=1e-6)
    assert dual.certificate(replace(r, q=np.roll(r.q, 1))).outside > 0.01


def test_the_printed_set_misses_the_truth_as_often_as_arithmetic_says() -> None:
    runs, N, p = 400, dual.VISITS, dual.RARE
    epsilon = np.sqrt(2 * 2 * np.log(N * 4 * 1 / verify.DELTA) / N)
    times = np.arange(N + 1)
    seen = stats.binom.pmf(times, N, p)
    expected = seen[np.abs(times / N - p) <= epsilon * p].sum()
    corrected, printed, moved, left = dual.printed_dual(runs, seed=3)
    assert printed.measured == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / runs))
    assert corrected.measured == 1.0
    assert seen[2 * np.abs(times / N - p) <= epsilon].sum() > 0.999
    assert moved.measured <= verify.EXACT
    assert left.measured <= 1e-6
    assert all(row.holds for row in (corrected, printed, moved, left))


def paths(losses: np.ndarray, learner: am.UCOREPS, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The q_t and the policies of a game, played by hand with the numbers of the world's stream."""
    drawn = uniforms(stream_key(seed, "world", "trajectories"), 0, len(losses), 2 * SK.num_layers)
    played = []
    for loss, u in zip(losses, drawn, strict=True):
        policy = learner.policy.copy()
        played.append((learner.q.copy(), policy))
        x, taken = 0, []
        for k in range(SK.num_layers):
            p = SK.pair_ptr[x] + int(u[2 * k] >= policy[SK.pair_ptr[x]])
            row = slice(SK.transition_ptr[p], SK.transition_ptr[p + 1])
            i = row.start + int(np.searchsorted(np.cumsum(WORLD.transition[row])[:-1], u[2 * k + 1], side="right"))
            taken.append(i)
            x = int(SK.successor[i])
        learner.update(am.Trajectory(np.zeros(3, int), np.zeros(2, int), np.array(taken)), loss)
    return played


def deterministic() -> list[np.ndarray]:
    """q of every deterministic policy."""
    actions = product((0, 1), repeat=3)
    return [am.occupancy(WORLD, am.deterministic_policy(SK, list(choice))) for choice in actions]


@pytest.mark.parametrize("adversary", verify.ADVERSARIES)
def test_regrets_are_those_of_a_game_played_by_hand(adversary) -> None:
    T, seed = 400, 5
    losses = adversary(SK, am.TotalLoss(), seed)
    found = verify.account(WORLD, losses, am.TotalLoss(), T, seed)
    drawn = losses.block(0, T)
    played = paths(drawn, am.UCOREPS(SK, horizon=T, delta=verify.DELTA), seed)
    paid = sum(float(am.occupancy(WORLD, pi) @ loss) for (_, pi), loss in zip(played, drawn, strict=True))
    believed = sum(float(q @ loss) for (q, _), loss in zip(played, drawn, strict=True))
    best = min(float(q @ drawn.sum(axis=0)) for q in deterministic())
    regrets = [found.total, found.approximation, found.online]
    assert_allclose(regrets, [paid - best, paid - believed, believed - best], atol=1e-9)
    assert found.gap <= verify.EXACT


@pytest.mark.parametrize("criterion", verify.CRITERIA[1:], ids=verify.name)
def test_regret_of_the_other_criteria_is_never_too_small(criterion: am.Criterion) -> None:
    """Against every policy on a grid, of which none may do better than the account says the best one does."""
    T, seed = 60, 2
    losses = verify.bad_state(SK, criterion, seed)
    found = verify.account(WORLD, losses, criterion, T, seed)
    drawn = losses.block(0, T)
    played = paths(drawn, am.UCOREPS(SK, horizon=T, criterion=criterion, delta=verify.DELTA), seed)
    true = [am.occupancy(WORLD, policy) for _, policy in played]
    paid = sum(criterion.value(SK, q, loss) for q, loss in zip(true, drawn, strict=True))
    believed = sum(criterion.value(SK, q, loss) for (q, _), loss in zip(played, drawn, strict=True))
    grid = [np.stack([p, 1 - p], axis=1).ravel() for p in np.array(list(product(np.linspace(0, 1, 7), repeat=3)))]
    measures = [am.occupancy(WORLD, policy) for policy in grid]
    best = min(sum(criterion.value(SK, q, loss) for loss in drawn) for q in measures)
    assert found.approximation == pytest.approx(paid - believed, abs=1e-9)
    assert paid - best - 1e-9 <= found.total <= paid - best + 0.5
    assert found.online == pytest.approx(found.total - found.approximation)


@pytest.mark.parametrize("criterion", verify.CRITERIA, ids=verify.name)
def test_the_linearised_regret_is_the_largest_over_all_policies(criterion: am.Criterion) -> None:
    T, seed = 200, 1
    losses = verify.switching(SK, criterion, seed)
    online, linear = verify.linearised(WORLD, losses, criterion, T, seed)
    rng, learner = generator(seed, "verify", "online"), am.UCOREPS(SK, horizon=T, criterion=criterion)
    regret = np.zeros(8)
    for t in range(T):
        q, loss = learner.q, losses.at(t)
        z = criterion.subgradient(SK, q, loss)
        regret += [float((q - one) @ z) for one in deterministic()]
        learner.update(WORLD.sample(learner.policy, rng), loss)
    assert linear == pytest.approx(regret.max(), abs=1e-9)
    assert online <= linear + 1e-9
    assert online == pytest.approx(linear, abs=1e-9) or criterion != am.TotalLoss()


def test_the_exponent_is_that_of_least_squares() -> None:
    rng, grid = np.random.default_rng(0), verify.horizons(10**6)
    assert grid == [1000, 3162, 10_000, 31_623, 100_000, 316_228, 10**6]
    regrets = [T**0.5 * float(np.exp(0.1 * rng.normal())) for T in grid]
    expected = stats.linregress(np.log(grid), np.log(regrets))
    assert verify.fitted(grid, regrets) == pytest.approx((expected.slope, expected.stderr))


@pytest.mark.parametrize(("power", "holds"), [(0.5, True), (0.6, False), (1.0, False)])
def test_growth_faster_than_the_theorems_fails(power: float, holds: bool) -> None:
    noise = np.exp(0.05 * np.random.default_rng(1).normal(size=14))
    grid = 2 * verify.horizons(10**6)
    accounts = [verify.Account(T, T**power * x, 0.0, 0.0, 0.0) for T, x in zip(grid, noise, strict=True)]
    row = verify.growth(SK, accounts, "")
    assert row.measured == pytest.approx(power, abs=0.02)
    exact = 0.5 + stats.linregress(np.log(grid), np.log(np.sqrt(np.log(np.multiply(grid, 4 * 2 / 0.05))))).slope
    assert row.claimed == pytest.approx(exact)
    assert row.holds == holds


def test_the_problem_is_small_enough_for_the_bounds_to_say_something() -> None:
    """Below L T at 10^6 episodes, for all three criteria; and the first T at which it is so, found by trying."""
    for criterion in verify.CRITERIA:
        assert bounds.total(SK, 10**6, verify.DELTA, criterion.lipschitz(SK)) < bounds.trivial(SK, 10**6)
    first = verify.first_below_trivial(SK)
    assert bounds.total(SK, int(0.95 * first), verify.DELTA) > bounds.trivial(SK, int(0.95 * first))
    assert bounds.total(SK, int(1.05 * first), verify.DELTA) < bounds.trivial(SK, int(1.05 * first))


def test_a_printed_set_that_held_the_truth_would_fail_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row claims that the printed dual loses Lemma 4.1: were it not so, it must not hold."""
    monkeypatch.setattr(dual, "covered_as_printed", lambda *_: True)
    rows = [row for row in dual.printed_dual(40, 0) if "printed dual" in row.what]
    assert [row.holds for row in rows] == [False]


@pytest.mark.parametrize(("online", "linear", "holds"), [(1.0, 2.0, True), (3.0, 2.0, False), (1.0, 1e9, False)])
def test_both_inequalities_of_theorem_5_3_hold(
    monkeypatch: pytest.MonkeyPatch, online: float, linear: float, holds: bool
) -> None:
    monkeypatch.setattr(verify, "linearised", lambda *_: (online, linear))
    assert [row.holds for row in verify.online_inequalities(1000, 0)] == [holds] * len(verify.CRITERIA)
