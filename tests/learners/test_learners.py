"""What every learner guarantees: it sees only what it declares, and play refuses learners that do not fit."""

import copy
import inspect
from pathlib import Path

import numpy as np
import pytest

import advmdp as am
from advmdp.core.streams import stream_key, uniforms
from advmdp.learners.episode import make_block
from tests.helpers.learners import (
    BANDITS,
    EITHER,
    GUARANTEED,
    LEARNERS,
    VARIANTS,
    Learner,
    fitting,
    ids,
    make,
)

DENSE = am.MDP.random([1, 3, 3, 1], 2, seed=0)
SPARSE = am.MDP.random([1, 4, 6, 4, 1], 3, seed=0, branching=2)


@pytest.mark.parametrize(("name", "feedback"), VARIANTS, ids=ids)
def test_every_learner_keeps_the_promises_of_learners(name: str, feedback: str | None) -> None:
    am.testing.check_learner(lambda told: make(name, feedback, told), knows=LEARNERS[name].knows)


@pytest.mark.parametrize(("name", "feedback"), VARIANTS, ids=ids)
def test_a_resumed_game_is_the_same_game(name: str, feedback: str | None, tmp_path: Path) -> None:
    losses = am.losses.Adaptive(SPARSE.skeleton, seed=3, strength=0.7)
    straight = am.play(SPARSE, losses, make(name, feedback, SPARSE, 150), 150, seed=5)
    first = make(name, feedback, SPARSE, 150)
    am.play(SPARSE, losses, first, 61, seed=5, checkpoint=tmp_path / "game.npz")
    again = make(name, feedback, SPARSE, 150)
    game = am.play(SPARSE, losses, again, 150, seed=5, checkpoint=tmp_path / "game.npz")
    assert game.curve.equals(straight.curve)
    assert game.learner.policy.tobytes() == straight.learner.policy.tobytes()
    for key, array in straight.learner.state().items():
        assert array.tobytes() == game.learner.state()[key].tobytes(), key


@pytest.mark.parametrize(("name", "feedback"), VARIANTS, ids=ids)
def test_blocks_and_single_episodes_give_the_same_account(
    name: str, feedback: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = am.losses.Switching(SPARSE.skeleton, period=4, seed=3)
    fast = am.play(SPARSE, losses, make(name, feedback, SPARSE), 60, seed=5)
    monkeypatch.setattr(LEARNERS[name], "compiled", property(lambda self: False))
    slow = am.play(SPARSE, losses, make(name, feedback, SPARSE), 60, seed=5)
    assert fast.curve.equals(slow.curve)
    assert fast.learner.policy.tobytes() == slow.learner.policy.tobytes()


# Bandit feedback


@pytest.mark.parametrize(("name", "feedback"), BANDITS, ids=ids)
@pytest.mark.parametrize("mdp", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_nothing_but_the_losses_of_its_path_reaches_a_bandit_learner(
    name: str, feedback: str | None, mdp: am.MDP
) -> None:
    """Off its path every loss is NaN, which would spoil all that it touches."""
    sk, count = mdp.skeleton, 80
    drawn = uniforms(stream_key(1, "world", "trajectories"), 0, count, 2 * sk.num_layers)
    losses = am.losses.Stochastic(sk, seed=2, noise=0.5).block(0, count)
    one, other = make(name, feedback, mdp, count), make(name, feedback, mdp, count)
    block = make_block(sk, losses, am.TotalLoss().terms, np.zeros((sk.num_transitions, 1)), drawn)
    one.play_block(mdp.dynamics, block)
    poisoned = np.full_like(losses, np.nan)
    rows = np.arange(count)[:, None]
    poisoned[rows, block.transitions] = losses[rows, block.transitions]
    second = make_block(sk, poisoned, am.TotalLoss().terms, np.zeros((sk.num_transitions, 1)), drawn)
    other.play_block(mdp.dynamics, second)
    assert np.array_equal(block.transitions, second.transitions)
    assert one.policy.tobytes() == other.policy.tobytes()
    for key, array in one.state().items():
        assert array.tobytes() == other.state()[key].tobytes(), key
    assert np.ptp(block.losses) > 0.5  # the losses that were not shown would have told it much


@pytest.mark.parametrize(("name", "feedback"), [v for v in VARIANTS if v not in BANDITS and v[0] != "Uniform"], ids=ids)
def test_full_information_learners_do_depend_on_other_losses(name: str, feedback: str | None) -> None:
    """So the test above can fail."""
    sk, count = DENSE.skeleton, 5
    drawn = uniforms(stream_key(1, "world", "trajectories"), 0, count, 2 * sk.num_layers)
    losses = np.full((count, sk.num_transitions), np.nan)
    block = make_block(sk, losses, am.TotalLoss().terms, np.zeros((sk.num_transitions, 1)), drawn)
    learner = make(name, feedback, DENSE, count)
    try:
        learner.play_block(DENSE.dynamics, block)
    except am.AdvMDPError:
        return
    assert any(np.isnan(array).any() for array in learner.state().values())


@pytest.mark.parametrize(("name", "feedback"), BANDITS, ids=ids)
def test_play_hands_over_the_losses_along_the_path(
    name: str, feedback: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, handed = LEARNERS[name], []
    real = kind.update

    def spy(self: Learner, trajectory: am.Trajectory, loss: np.ndarray) -> None:
        handed.append((trajectory, loss))
        real(self, trajectory, loss)

    monkeypatch.setattr(kind, "compiled", property(lambda self: False))
    monkeypatch.setattr(kind, "update", spy)
    losses = am.losses.Stochastic(DENSE.skeleton, seed=2, noise=0.5)
    am.play(DENSE, losses, make(name, feedback, DENSE), 10)
    assert len(handed) == 10
    for t, (trajectory, loss) in enumerate(handed):
        assert loss.shape == (DENSE.skeleton.num_layers,)
        assert loss.base is None or loss.base.shape == loss.shape  # no view of more
        assert np.array_equal(loss, losses.at(t)[trajectory.transitions])


@pytest.mark.parametrize("loss", [np.zeros(16), [0.1, 0.2], [0.1, 0.2, 1.3], [0.1, np.nan, 0.2]], ids=str)
def test_a_bandit_learner_refuses_anything_but_a_loss_for_each_step(loss: object) -> None:
    learner = am.OSSP(DENSE, 10)
    path = DENSE.sample(learner.policy, np.random.default_rng(0))
    with pytest.raises(am.InputError, match="3 numbers from 0 to 1"):
        learner.update(path, loss)


# What fits


def test_declarations_are_those_of_the_algorithms() -> None:
    told = {name: (kind.knows, kind.sees, kind.optimises) for name in LEARNERS if (kind := LEARNERS[name])}
    known = {name for name, (knows, _, _) in told.items() if knows == "dynamics"}
    assert known == {"OREPS", "MDPE", "LazyFPL", "OSSP", "MDPEXP3"}
    assert {name for name, (_, sees, _) in told.items() if sees == "bandit"} == {"UOBREPS", "OSSP", "MDPEXP3"}
    assert {name for name, (_, sees, _) in told.items() if sees == "full or bandit"} == set(EITHER)
    assert {name for name, (_, _, optimises) in told.items() if optimises == "any"} == {
        "SelfTuning",
        "UCOREPS",
        "OREPS",
    }


@pytest.mark.parametrize(
    ("name", "value"), [("sees", "path"), ("knows", "P"), ("optimises", "all"), ("assumes", "none")]
)
def test_impossible_declarations_are_refused_when_the_class_is_made(name: str, value: str) -> None:
    with pytest.raises(am.InputError, match=f"{name} of the class Typo: '{value}'; expected one of "):
        type("Typo", (am.Uniform,), {name: value})


def test_errors_name_the_learners_that_fit() -> None:
    names = ("UCRL2", "REGAL", "UCBVI", "Uniform")
    untold = ", ".join(["UOBREPS", *(f"{name}(feedback='bandit')" for name in names)])
    assert fitting("bandit", "skeleton") == untold
    assert fitting("full", "skeleton", "any") == "SelfTuning, UCOREPS"
    assert fitting("full", "dynamics", "any") == "SelfTuning, UCOREPS, OREPS"
    assert fitting("bandit", "dynamics", "any") == "no learner of this library"
    assert fitting("full") == ", ".join(LEARNERS)


REFUSED = [
    (lambda sk: am.OREPS(DENSE, 5, am.Risk(0.5, 2.0)), {"feedback": "bandit"}, "no learner of this library$"),
    (lambda sk: am.UCOREPS(sk, 10), {"feedback": "bandit"},  r"UCOREPS, which must see.*OREPS\(.*\), UOBREPS, OSSP"),
    (
        am.UCRL2,
        {"feedback": "bandit", "dynamics": "unknown"},
        r"UOBREPS, UCRL2\(feedback='bandit'\), REGAL",
    ),
    (lambda sk: am.MDPE(DENSE, 10), {"dynamics": "unknown"}, "MDPE, which must know.*UCOREPS, UOBREPS, FPOP"),
    (lambda sk: am.OSSP(DENSE, 10), {"dynamics": "unknown"}, r"skeleton only: UOBREPS, UCRL2\(feedback.*Uniform"),
    (
        lambda sk: am.OREPS(am.MDP.random([1, 3, 3, 1], 2, seed=1), 10),
        {},
        "made for other dynamics.*UCOREPS, UOBREPS",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("learner", "game", "message"), REFUSED)
def test_play_refuses_learners_that_do_not_fit_and_names_those_that_do(
    learner: object, game: dict, message: str
) -> None:
    sk = DENSE.skeleton
    with pytest.raises(am.InputError, match=message):
        am.play(DENSE, am.losses.Stochastic(sk), learner(sk), 10, **game)


def test_several_losses_at_once_need_a_criterion_for_them() -> None:
    sk = DENSE.skeleton
    losses = am.losses.Stochastic(sk, dimensions=2)
    with pytest.raises(
        am.InputError, match=r"2 losses at once for UCRL2 .*WorstCase\(\) and one of SelfTuning, UCOREPS, OREPS"
    ):
        am.play(DENSE, losses, am.UCRL2(sk), 10)
    am.play(DENSE, losses, am.OREPS(DENSE, 10, am.WorstCase()), 10)


@pytest.mark.parametrize(
    ("game", "message"), [({"feedback": "some"}, "feedback: .*'some'"), ({"dynamics": "no"}, "dynamics: .*'no'")]
)
def test_invalid_feedback_and_dynamics_are_refused(game: dict, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        am.play(DENSE, am.losses.Stochastic(DENSE.skeleton), am.Uniform(DENSE.skeleton), 2, **game)


def test_games_that_reveal_enough_are_played() -> None:
    losses = am.losses.Stochastic(DENSE.skeleton)
    for name, feedback in VARIANTS:
        learner = make(name, feedback, DENSE, 3)
        am.play(DENSE, losses, learner, 3, feedback="full", dynamics="known")
        if learner.feedback == "bandit" and learner.mdp is None:
            am.play(DENSE, losses, make(name, feedback, DENSE, 3), 3, feedback="bandit", dynamics="unknown")


@pytest.mark.parametrize("name", [name for name in LEARNERS if LEARNERS[name].optimises == "total"])
def test_an_unsupported_criterion_is_refused(name: str) -> None:
    kind, takes = LEARNERS[name], inspect.signature(LEARNERS[name]).parameters
    told = DENSE if kind.knows == "dynamics" else DENSE.skeleton
    given = {"horizon": 5} if "horizon" in takes else {}
    with pytest.raises(am.InputError, match=r"TotalLoss\(\), the only one it supports, or .*UCOREPS"):
        kind(told, **given, criterion=am.Risk(0.5, 2.0))


def test_with_bandit_feedback_oreps_optimises_the_total_loss_only() -> None:
    with pytest.raises(am.InputError, match="the only one it supports"):
        am.OREPS(DENSE, 10, am.Risk(0.5, 2.0), feedback="bandit")


@pytest.mark.parametrize("name", ["OREPS", "MDPE", "LazyFPL", "OSSP", "MDPEXP3"])
def test_learners_for_known_dynamics_need_an_mdp(name: str) -> None:
    with pytest.raises(am.InputError, match=f"{name}: .*an MDP, since it must know the dynamics; .*UOBREPS"):
        make(name, None, DENSE.skeleton)


def test_suggested_learners_work_with_the_same_feedback() -> None:
    with pytest.raises(am.InputError, match="dynamics; UOBREPS, UCRL2.*, Uniform.* need not"):
        am.OREPS(DENSE.skeleton, 5, feedback="bandit")


@pytest.mark.parametrize("name", ["FPOP", "UCRL2", "REGAL", "UCBVI", "UOBREPS"])
def test_learners_for_unknown_dynamics_refuse_an_mdp(name: str) -> None:
    kind = LEARNERS[name]
    given = {"horizon": 5} if "horizon" in inspect.signature(kind).parameters else {}
    with pytest.raises(am.InputError, match="mdp.skeleton is one"):
        kind(DENSE, **given)


@pytest.mark.parametrize(("name", "feedback"), VARIANTS, ids=ids)
def test_a_copy_continues_like_the_learner(name: str, feedback: str | None) -> None:
    learner, losses = make(name, feedback, SPARSE), am.losses.Stochastic(SPARSE.skeleton, seed=1, noise=0.5)
    am.play(SPARSE, losses, learner, 30)
    other = copy.deepcopy(learner)
    assert other.episode == 30
    for one in (learner, other):
        am.play(SPARSE, losses, one, 20, seed=4)
    assert learner.policy.tobytes() == other.policy.tobytes()


@pytest.mark.parametrize("make_one", [
    lambda: am.OREPS(DENSE, 100, feedback="bandit", eta=0.5), lambda: am.OSSP(DENSE, 100, eta=0.5),
    lambda: am.MDPEXP3(DENSE, 100, eta=0.5, gamma=1e-300),
])  # fmt: skip
def test_a_path_that_the_policy_never_takes_is_refused(make_one: object) -> None:
    learner = make_one()
    path = DENSE.sample(learner.policy, np.random.default_rng(0))
    policy = np.array(learner.policy)
    policy[path.pairs[0]], policy[1 - path.pairs[0]] = 0.0, 1.0
    learner._memory.policy[:] = policy
    with pytest.raises(am.InputError, match="trajectory: .*which the policy never takes"):
        learner.update(path, np.ones(3))


def test_a_state_with_something_missing_or_infinite_is_refused() -> None:
    learner = am.OSSP(DENSE, 10)
    state = learner.state()
    with pytest.raises(am.InputError, match="state of OSSP: no scores"):
        learner.restore({"policy": state["policy"]})
    with pytest.raises(am.InputError, match="state of OSSP, scores at layer 0, state 0, action 0: inf; expected a sum"):
        learner.restore({**state, "scores": state["scores"] + np.inf})


BAD = [
    (lambda: am.OREPS(DENSE, 10, feedback=""), "feedback of OREPS"),
    (lambda: am.OREPS(DENSE, 10, feedback=np.zeros(2)), "feedback of OREPS"),
    (lambda: am.OREPS(DENSE, 10**400), "horizon"),
    (lambda: am.OREPS(DENSE, 10, eta=np.array([0.1, 0.2])), "eta"),
    (lambda: am.OREPS(DENSE, 10, eta=np.complex128(1 + 2j)), "eta"),
    (lambda: am.OSSP(DENSE, 10, gamma=True), "gamma"),
    (lambda: am.MDPEXP3(DENSE, 10, gamma=0.0), "gamma"),
    (lambda: am.optimistic_response(DENSE.skeleton, np.zeros(30), am.Point(DENSE.transition), span="x"), "span"),
    (lambda: am.OREPS(DENSE, 10, feedback="some"), "feedback of OREPS"),
    (lambda: am.OREPS(DENSE, 0), "horizon"),
    (lambda: am.OREPS(DENSE, 10, eta=-1.0), "eta"),
    (lambda: am.UOBREPS(DENSE.skeleton, 10, gamma=0.0), "gamma"),
    (lambda: am.UOBREPS(DENSE.skeleton, None), "horizon"),
    (lambda: am.FPOP(DENSE.skeleton, 10, delta=1.0), "delta"),
    (lambda: am.FPOP(DENSE.skeleton, 10, seed=-1), "seed"),
    (lambda: am.MDPE(DENSE, 1.5), "horizon"),
    (lambda: am.LazyFPL(DENSE, scale=0.0), "scale"),
    (lambda: am.OSSP(DENSE, 10, gamma=1.5), "gamma"),
    (lambda: am.MDPEXP3(DENSE, 10, gamma="some"), "gamma"),
    (lambda: am.UCRL2(DENSE.skeleton, confidence_scale=0.0), "confidence_scale"),
    (lambda: am.REGAL(DENSE.skeleton, span=-1.0), "span"),
    (lambda: am.REGAL(DENSE.skeleton, span="wide"), "span"),
    (lambda: am.REGAL(DENSE.skeleton, 2000), "span"),
    (lambda: am.UCBVI(DENSE.skeleton, "long"), "horizon"),
]


@pytest.mark.parametrize(("call", "where"), BAD)
def test_bad_parameters_are_named(call: object, where: str) -> None:
    with pytest.raises(am.InputError, match=f"^{where}"):
        call()


# Guarantees


@pytest.mark.parametrize(("name", "feedback"), GUARANTEED, ids=ids)
def test_guarantees_hold_on_live_runs(name: str, feedback: str | None) -> None:
    """Where the guarantee is of expectations, of the mean over seeds; losses that its guarantee is about."""
    mdp, T = am.MDP.dense([[[[0.7, 0.3], [0.4, 0.6]]], np.ones((2, 2, 1))]), 2000
    sk = mdp.skeleton
    kinds = [lambda seed: am.losses.Stochastic(sk, seed=seed, noise=0.5)]
    assumes = make(name, feedback, mdp, T).assumes
    if assumes != "stochastic":
        kinds += [lambda seed: am.losses.Switching(sk, period=1, seed=seed)]
        kinds += [lambda seed: am.losses.Switching(sk, period=T // 2, seed=seed)]
    if assumes == "arbitrary":
        kinds += [lambda seed: am.losses.Adaptive(sk, seed=seed, strength=0.9)]
    for kind in kinds:
        games = [am.play(mdp, kind(seed), make(name, feedback, mdp, T), T, seed) for seed in range(4)]
        bound = games[0].curve["bound"][-1]
        assert np.isfinite(bound)
        assert np.mean([game.regret for game in games]) <= bound


def test_bounds_are_the_formulas_of_the_papers() -> None:
    """By hand, for L = 2, |X| = 4, |A| = 2, T = 1000 and delta = 0.1."""
    mdp, T, d = am.MDP.dense([[[[0.7, 0.3], [0.4, 0.6]]], np.ones((2, 2, 1))]), 1000, 0.1
    sk, ln, sqrt = mdp.skeleton, np.log, np.sqrt
    alpha = 0.3
    variance = 2 * 2 * 3 * 5 / (12 * alpha)
    changes, entropy = np.log2(8 * T / 8), ln(8 / 2) + 1
    fpop = 2 * 2 * 8 * sqrt(changes * entropy * (np.e - 1) * T)
    fpop += (sqrt(2) + 1) * 2 * 4 * sqrt(T * 2 * ln(T * 8 / (d * 2))) + 2 * 4 * sqrt(2 * T * ln(2 / d)) + 3 * d * 2 * T
    i = ln(5 * 8 * 2 * T / d)
    expected = {
        am.OREPS(mdp, T): 2 * 2 * sqrt(T * ln(8 / 2)),
        am.OREPS(mdp, T, am.Risk(0.5, 2.0)): 2 * 1.0 * 2 * sqrt(T * ln(8 / 2)) * am.Risk(0.5, 2.0).lipschitz(sk),
        am.OREPS(mdp, T, feedback="bandit"): 2 * sqrt(2 * 8 * T * ln(8 / 2)),
        am.UOBREPS(sk, T, delta=d): 2 * 4 * sqrt(2 * T * ln(T * 8 / d)),
        am.FPOP(sk, T, delta=d): fpop,
        am.MDPE(mdp, T): 4 * sqrt(T * ln(2) / 2),
        am.OSSP(mdp, T): 2 * sqrt(2 * ln(2) * T * variance),
        am.MDPEXP3(mdp, T): 3 * (2**4 * 4**2 * 2 * ln(2) / 2) ** (1 / 3) * T ** (2 / 3),
        am.UCRL2(sk, delta=d): 34 * 2 * 4 * sqrt(2 * 2 * T * ln(2 * T / d)),
        am.REGAL(sk, 0.5, delta=d): 34 * 1.5 * 4 * sqrt(2 * 2 * T * ln(2 * T / d)),
        am.UCBVI(sk, T, delta=d): 20 * 2 * i * sqrt(4 * 2 * 2 * T) + 250 * 4 * 16 * 2 * i**2,
    }
    for learner, bound in expected.items():
        assert learner.bound(T) == pytest.approx(bound, rel=1e-12), learner


def test_the_bound_of_lazy_fpl_counts_its_early_phases() -> None:
    """By hand, for L = 2 and |X||A| = 8: phases of 1, 2, 2, 2, 3, ... episodes."""
    mdp = am.MDP.dense([[[[0.7, 0.3], [0.4, 0.6]]], np.ones((2, 2, 1))])
    lengths = [int(np.ceil(np.sqrt(m))) for m in range(1, 200)]
    total, squares, early = 0, 0, 0
    for length in lengths:
        total, squares = total + length, squares + length**2
        early += length * (np.sqrt((np.log(4) + 1) / ((np.e - 1) * 8 * squares)) * length * 8 > 1)
    expected = 3 * 2 * np.sqrt((np.e - 1) * 8 * (np.log(4) + 1) * squares) + 2 * early
    assert 10 < early < total / 2
    assert am.LazyFPL(mdp).bound(total) == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore::advmdp.core.errors.AdvMDPWarning")
@pytest.mark.parametrize("name", ["MDPE", "OREPS", "OSSP", "UCRL2", "UCBVI", "LazyFPL"])
def test_the_guarantee_covers_only_the_first_game(name: str) -> None:
    """What was learned in the first may be wrong in the second."""
    mdp = am.MDP(am.Skeleton.dense([1, 1], 2), np.ones(2))
    learner = make(name, None, mdp, 200)
    first, second = (am.losses.Replay(mdp.skeleton, np.tile(row, (200, 1))) for row in ([0.0, 1.0], [1.0, 0.0]))
    if learner.assumes == "stochastic":
        first = second = am.losses.Stochastic(mdp.skeleton)
    assert np.isfinite(am.play(mdp, first, learner, 200).curve["bound"][-1])
    assert am.play(mdp, second, learner, 200).curve["bound"].is_infinite().all()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), [
    ("UCOREPS", {"confidence_scale": 0.2, "eta": 0.1}), ("FPOP", {"confidence_scale": 0.2}),
    ("LazyFPL", {"scale": 0.1}), ("UCRL2", {"confidence_scale": 0.1}), ("REGAL", {"confidence_scale": 0.1}),
    ("UCBVI", {"confidence_scale": 0.01}), ("UCRL2", {"confidence_scale": 0.1, "feedback": "bandit"}),
])  # fmt: skip
def test_learners_with_vacuous_bounds_still_learn(name: str, options: dict) -> None:
    """With practical parameters, for stochastic losses: a tenth of what playing at random costs, and sublinear."""
    kind, takes = LEARNERS[name], inspect.signature(LEARNERS[name]).parameters
    told = DENSE if kind.knows == "dynamics" else DENSE.skeleton

    def regret(T: int) -> float:
        given = {"horizon": T} if "horizon" in takes else {}
        losses = [am.losses.Stochastic(DENSE.skeleton, seed=seed, noise=0.5) for seed in range(5)]
        return float(np.mean([am.play(DENSE, one, kind(told, **given, **options), T).regret for one in losses]))

    worlds = [am.losses.Stochastic(DENSE.skeleton, seed=seed, noise=0.5) for seed in range(5)]
    chance = np.mean([am.play(DENSE, losses, am.Uniform(DENSE.skeleton), 8000).regret for losses in worlds])
    assert regret(8000) <= 0.1 * chance
    assert regret(8000) <= 2.8 * regret(2000)


def test_bounds_are_not_quoted_where_they_are_not_proven() -> None:
    sk = DENSE.skeleton
    for learner in (
        am.OREPS(DENSE, 10, eta=0.1), am.UOBREPS(sk, 10, gamma=0.1), am.FPOP(sk, 10, confidence_scale=0.5),
        am.MDPE(DENSE, 10, eta=0.1), am.LazyFPL(DENSE, scale=0.5), am.OSSP(DENSE, 10, eta=0.1),
        am.MDPEXP3(DENSE, 10, gamma=0.1), am.UCRL2(sk, confidence_scale=0.5), am.UCBVI(sk, 10, confidence_scale=0.5),
        am.OSSP(SPARSE, 10),
    ):  # fmt: skip
        assert learner.bound(10) == np.inf
    for losses, learner in (
        (am.losses.Switching(sk, period=2), am.UCRL2(sk)),
        (am.losses.Adaptive(sk), am.FPOP(sk, 10)),
        (am.losses.Adaptive(sk), am.OREPS(DENSE, 10, feedback="bandit")),
    ):
        assert am.play(DENSE, losses, learner, 10).curve["bound"][-1] == np.inf


def test_every_learner_can_be_made_with_the_theorys_parameters() -> None:
    for name in LEARNERS:
        assert type(make(name, None, DENSE, 7)).__name__ == name


BEYOND = "has learned from .* episodes, but horizon=6: its guarantee does not cover the episodes beyond"


@pytest.mark.parametrize(
    "name", [name for name in LEARNERS if "horizon" in inspect.signature(LEARNERS[name]).parameters]
)
@pytest.mark.parametrize("how", ["in blocks", "one by one"])
def test_a_learner_warns_once_when_it_is_played_beyond_its_horizon(name: str, how: str) -> None:
    learner = make(name, None, DENSE, 6)

    def play(episodes: int) -> None:
        losses = am.losses.Switching(DENSE.skeleton, period=2)
        if how == "in blocks":
            am.play(DENSE, losses, learner, episodes)
            return
        for t in range(episodes):
            path = DENSE.sample(learner.policy, np.random.default_rng(t))
            loss = losses.at(t)
            learner.update(path, loss if learner.feedback == "full" else loss[path.transitions])

    play(6)  # a warning is an error here
    with pytest.warns(am.AdvMDPWarning, match=BEYOND) as caught:
        play(20)
    assert len(caught) == 1
    play(5)
    assert copy.copy(learner).episode == 31


def test_without_a_horizon_there_is_no_warning() -> None:
    for learner in (am.UCOREPS(DENSE.skeleton), am.FollowLeader(DENSE.skeleton)):
        am.play(DENSE, am.losses.Switching(DENSE.skeleton, period=2), learner, 20)


def test_resuming_a_checkpoint_beyond_the_horizon_warns(tmp_path: Path) -> None:
    losses = am.losses.Switching(DENSE.skeleton, period=2)
    for _ in range(2):
        with pytest.warns(am.AdvMDPWarning, match=BEYOND) as caught:
            am.play(DENSE, losses, make("UCOREPS", None, DENSE, 6), 9, checkpoint=tmp_path / "game.npz")
        assert len(caught) == 1
