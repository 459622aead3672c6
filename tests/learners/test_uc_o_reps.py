"""UC-O-REPS: against Algorithms 2 and 3 written out with CVXPY, against Hedge in closed form, and its bookkeeping."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import advmdp as am
from advmdp.confidence import CHOICES, Kinds, confidence_set, pointwise_set
from tests.helpers.cvx import cp
from tests.helpers.damage import forge
from tests.helpers.learners import played
from tests.helpers.oracles import box_rules, flow_rules, l1_rules, occupancy_variable
from tests.helpers.strategies import build_mdp

SPARSE = build_mdp([1, 3, 4, 2, 1], np.random.default_rng(5), 3, zeros=False)
DENSE = am.MDP.random([1, 3, 2, 1], 2, seed=3)
WIDTHS = np.diff(SPARSE.skeleton.transition_ptr)
SHARP = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}  # q is then good to their root, about
CRITERIA = {
    "total": (am.TotalLoss(), None),
    "worst": (am.WorstCase(), 2),
    "risk": (am.Risk(0.4, 2.0), None),
    "sum": (0.5 * am.TotalLoss() + 0.5 * am.Risk(1.0, 1.5), None),
}


class Reference:
    """Algorithms 2 and 3 to the letter, as corrected: NumPy counts, and CVXPY for the update in one piece."""

    def __init__(self, sk: am.Skeleton, horizon: int, eta: float, delta: float, scale: float, bernstein: bool) -> None:
        self.sk, self.eta, self.scale, self.bernstein = sk, eta, scale, bernstein
        self.log = np.log(horizon * sk.num_states * sk.num_actions / delta)
        widths = np.diff(sk.layer_transition_ptr)
        self.q = np.repeat(1.0 / widths, widths)
        self.N, self.n = np.zeros(sk.num_pairs), np.zeros(sk.num_pairs)
        self.M, self.m = np.zeros(sk.num_transitions), np.zeros(sk.num_transitions)
        self.epochs = 1

    def rules(self, q: cp.Variable) -> list:
        sk, visits = self.sk, np.maximum(1.0, self.N)
        center = self.M / sk.over_transitions(visits)
        if self.bernstein:
            rest = sk.over_transitions(np.maximum(1.0, self.N - 1))
            width = self.scale * (2 * np.sqrt(center * self.log / rest) + 14 * self.log / (3 * rest))
            width[sk.over_transitions(self.N == 0)] = 1.0
            return box_rules(sk, q, np.maximum(0.0, center - width), np.minimum(1.0, center + width))
        next_layer = np.repeat(sk.layer_sizes[1:], np.diff(sk.layer_pair_ptr))
        return l1_rules(sk, q, center, self.scale * np.sqrt(2 * next_layer * self.log / visits))

    def update(self, trajectory: am.Trajectory, z: np.ndarray) -> None:
        for p, i in zip(trajectory.pairs, trajectory.transitions, strict=True):
            self.n[p] += 1
            self.m[i] += 1
        if any(self.n[p] >= max(1, self.N[p]) for p in trajectory.pairs):
            self.N, self.M = self.N + self.n, self.M + self.m
            self.n, self.m = 0 * self.n, 0 * self.m
            self.epochs += 1
        q = occupancy_variable(self.sk)
        goal = cp.Minimize(self.eta * (z @ q) + cp.sum(cp.kl_div(q, np.maximum(self.q, 1e-12))))
        cp.Problem(goal, [*flow_rules(self.sk, q), *self.rules(q)]).solve(solver=cp.CLARABEL, **SHARP)
        self.q = np.maximum(q.value, 0.0)


@pytest.mark.parametrize("confidence", ["l1", "bernstein"])
@pytest.mark.parametrize("kind", CRITERIA)
def test_it_is_the_algorithm_of_the_paper(kind: str, confidence: str) -> None:
    criterion, dimensions = CRITERIA[kind]
    sk, eta, scale = DENSE.skeleton, 0.3, 0.15
    losses = am.losses.Switching(sk, period=4, seed=1, dimensions=dimensions)
    learner = am.UCOREPS(
        sk, horizon=100, criterion=criterion, eta=eta, delta=0.1, confidence=confidence, confidence_scale=scale
    )
    reference = Reference(sk, 100, eta, 0.1, scale, confidence == "bernstein")
    rng, bound = np.random.default_rng(7), 0
    for t in range(14):
        assert_allclose(learner.q, reference.q, atol=2e-5)
        reference.q = np.array(learner.q)  # or the oracle's errors would add up
        trajectory = DENSE.sample(learner.policy, rng)
        reference.update(trajectory, criterion.subgradient(sk, reference.q, losses.at(t)))
        before = learner.row_set
        learner.update(trajectory, losses.at(t))
        assert learner.epochs == reference.epochs
        bound += before is not learner.row_set
    assert bound >= 5  # epochs ended, and sets changed


def test_the_start_is_uniform() -> None:
    learner = am.UCOREPS(DENSE.skeleton, horizon=10)
    assert_allclose(learner.policy, 0.5, rtol=1e-12)
    widths = np.diff(DENSE.skeleton.layer_transition_ptr)
    assert_allclose(learner.q, np.repeat(1.0 / widths, widths), rtol=1e-12)


def test_where_the_uniform_measure_is_no_occupancy_measure_the_closest_is_taken() -> None:
    sk = SPARSE.skeleton
    widths = np.diff(sk.layer_transition_ptr)
    q = occupancy_variable(sk)
    goal = cp.Minimize(cp.sum(cp.kl_div(q, np.repeat(1.0 / widths, widths))))
    cp.Problem(goal, flow_rules(sk, q)).solve(solver=cp.CLARABEL, **SHARP)
    assert_allclose(am.UCOREPS(sk, horizon=10).q, q.value, atol=1e-5)


def one_step(actions: int) -> am.Skeleton:
    return am.Skeleton.dense([1, 1], actions)


def test_with_one_state_it_is_hedge() -> None:
    sk, eta = one_step(4), 0.37
    learner, losses = am.UCOREPS(sk, horizon=50, eta=eta), am.losses.Stochastic(sk, seed=2)
    played(learner, am.MDP(sk, np.ones(4)), losses, 50)
    weights = np.exp(-eta * losses.block(0, 50).sum(axis=0))
    assert_allclose(learner.policy, weights / weights.sum(), rtol=1e-9)


def test_without_a_horizon_it_is_hedge_with_a_falling_step() -> None:
    sk = one_step(4)
    learner, losses = am.UCOREPS(sk), am.losses.Stochastic(sk, seed=2)
    played(learner, am.MDP(sk, np.ones(4)), losses, 60)
    eta = np.sqrt(np.log(2**2 * 4 / 1**2) / 61)
    weights = np.exp(-eta * losses.block(0, 60).sum(axis=0))
    assert_allclose(learner.policy, weights / weights.sum(), rtol=1e-9)


def test_without_a_horizon_early_losses_are_not_remembered_for_ever() -> None:
    """Mirror descent with eta / sqrt(t) alone has a regret of T / 2 here."""
    sk, T = one_step(2), 4000
    rows = np.zeros((T, 2))
    rows[: T // 4, 0] = rows[T // 4 :, 1] = 1.0
    game = am.play(am.MDP(sk, np.ones(2)), am.losses.Replay(sk, rows), am.UCOREPS(sk), T)
    assert game.regret <= 2 * am.bounds.online(sk, T)


def test_a_fixed_share_is_that_of_herbster_and_warmuth() -> None:
    sk, eta, share = one_step(3), 0.5, 0.02
    learner, losses = am.UCOREPS(sk, horizon=40, eta=eta, share=share), am.losses.Switching(sk, period=10, seed=3)
    played(learner, am.MDP(sk, np.ones(3)), losses, 40)
    p = np.full(3, 1 / 3)
    for t in range(40):
        p = (1 - share) * p * np.exp(-eta * losses.at(t)) + share / 3
        p /= p.sum()
    assert_allclose(learner.policy, p, rtol=1e-9)


@pytest.mark.parametrize(("criterion", "F"), [(am.TotalLoss(), 1.0), (am.Risk(0.5, 2.0), 0.5 * 2 * 3 + 0.5 * 2)])
def test_eta_and_f_are_the_theorys(criterion: am.Criterion, F: float) -> None:
    sk = DENSE.skeleton  # L = 3, |X| = 7, |A| = 2
    expected = np.sqrt(np.log(7**2 * 2 / 3**2) / (F**2 * 1000))
    given = am.UCOREPS(sk, horizon=1000, criterion=criterion, eta=expected)
    theory = am.UCOREPS(sk, horizon=1000, criterion=criterion)
    losses = am.losses.Stochastic(sk, seed=0)
    for learner in (given, theory):
        played(learner, DENSE, losses, 5)
    assert_allclose(theory.q, given.q, rtol=1e-12)


def test_arrays_read_from_it_do_not_change_afterwards() -> None:
    learner = am.UCOREPS(DENSE.skeleton, horizon=10, eta=0.5)
    policy, q, state = learner.policy, learner.q, learner.state()
    kept = policy.copy(), q.copy()
    played(learner, DENSE, am.losses.Stochastic(DENSE.skeleton, seed=0), 5)
    assert np.array_equal(policy, kept[0])
    assert np.array_equal(q, kept[1])
    learner.restore(state)
    assert np.array_equal(learner.policy, kept[0])


@pytest.mark.parametrize("confidence", ["l1", "weissman", "chernoff", "pointwise", "bernstein"])
def test_every_q_lies_in_the_set_of_the_epoch_in_which_it_is_played(confidence: str) -> None:
    sk = SPARSE.skeleton
    learner = am.UCOREPS(sk, horizon=300, eta=0.3, confidence=confidence, confidence_scale=0.1)
    losses, rng = am.losses.Switching(sk, period=20, seed=4), np.random.default_rng(1)
    for t in range(300):
        q, rows = learner.q, learner.row_set
        assert am.flow_residuals(sk, q).largest < 1e-12
        p = am.transition_of(sk, q)
        heavy = sk.over_transitions(np.add.reduceat(q, sk.transition_ptr[:-1])) > 1e-12
        if confidence != "bernstein":
            distance = np.add.reduceat(np.abs(p - rows.center), sk.transition_ptr[:-1])
            known = (rows.radius < 2) & (np.add.reduceat(rows.center, sk.transition_ptr[:-1]) > 0)
            known &= np.add.reduceat(q, sk.transition_ptr[:-1]) > 1e-12
            assert (distance <= rows.radius + 1e-9)[known].all()
        else:
            assert ((p >= rows.lower - 1e-9) & (p <= rows.upper + 1e-9))[heavy].all()
        learner.update(SPARSE.sample(learner.policy, rng), losses.at(t))


def test_it_sees_only_the_skeleton() -> None:
    with pytest.raises(am.InputError, match="Skeleton"):
        am.UCOREPS(DENSE, horizon=10)
    other = am.MDP.random([1, 3, 2, 1], 2, seed=99)
    learners = [am.UCOREPS(world.skeleton, horizon=50, eta=0.2) for world in (DENSE, other)]
    rng, losses = np.random.default_rng(0), am.losses.Stochastic(DENSE.skeleton, seed=0)
    for t in range(50):  # the same trajectories: nothing else of the world may matter
        trajectory = DENSE.sample(learners[0].policy, rng)
        for learner in learners:
            learner.update(trajectory, losses.at(t))
    assert learners[0].q.tobytes() == learners[1].q.tobytes()


def test_a_criterion_in_python_learns_as_its_compiled_twin() -> None:
    sk = DENSE.skeleton
    twin = am.FunctionCriterion(
        value=lambda q, loss: (q @ loss) ** 2, subgradient=lambda q, loss: 2 * (q @ loss) * loss, lipschitz=6.0
    )
    learners = [am.UCOREPS(sk, horizon=30, criterion=c, eta=0.2) for c in (am.Risk(1.0, 2.0), twin)]
    for learner in learners:
        played(learner, DENSE, am.losses.Stochastic(sk, seed=0), 30)
    assert_allclose(learners[0].q, learners[1].q, rtol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {}, {"confidence": "bernstein", "share": 0.01}, {"horizon": None}, {"horizon": None, "confidence": "weissman"},
        {"confidence": "chernoff"}, {"confidence": "pointwise"}, {"confidence": "pointwise", "kinds": WIDTHS},
    ],
)  # fmt: skip
@pytest.mark.parametrize("stop", [0, 1, 37])
def test_a_loaded_learner_continues_to_the_bit(tmp_path: Path, stop: int, options: dict) -> None:
    sk, losses = SPARSE.skeleton, am.losses.Switching(SPARSE.skeleton, period=5, seed=0)
    options = {"horizon": 80, "confidence_scale": 0.2, "criterion": am.Risk(0.5, 2.0)} | options
    straight = am.UCOREPS(sk, **options)
    history = played(straight, SPARSE, losses, 80)
    stopped = am.UCOREPS(sk, **options)
    for t, (trajectory, _) in enumerate(history):
        if t == stop:
            stopped.save(tmp_path / "learner.npz")
            stopped = am.load_learner(tmp_path / "learner.npz")
            assert stopped.episode == stop
            assert stopped.skeleton == sk
        stopped.update(trajectory, losses.at(t))
    straight.save(tmp_path / "a.npz")
    stopped.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_criterion_of_functions_is_passed_when_loading(tmp_path: Path) -> None:
    mine = am.FunctionCriterion(value=lambda q, loss: q @ loss, subgradient=lambda q, loss: loss, lipschitz=1.0)
    am.UCOREPS(DENSE.skeleton, horizon=5, criterion=mine).save(tmp_path / "x.npz")
    with pytest.raises(am.InputError, match="criterion="):
        am.load_learner(tmp_path / "x.npz")
    assert am.load_learner(tmp_path / "x.npz", criterion=mine).criterion is mine


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(tmp_path: Path, share: float) -> None:
    path = tmp_path / "x.npz"
    am.UCOREPS(DENSE.skeleton, horizon=5).save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(am.InputError, match=r"x\.npz"):
        am.load_learner(path)


def about(**changes):
    """Change entries of the JSON part."""
    return lambda about, arrays: about.update(changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (about(kind="game"), "kind 'game'"),
        (about(version=3), "version 3"),
        (about(version=1), "version 1 with a checksum"),
        (about(version=True), "version True"),
        (about(episode=-7), "episode"),
        (about(episode=1.5), "episode"),
        (about(learner="os.system"), "a learner called os.system"),
        (about(parameters={"horizon": -3}), "horizon"),
        (about(parameters={"nonsense": 1}), "nonsense"),
        (about(criterion={"terms": [["nonsense", 1, 1, 1]]}), "nonsense"),
        (about(episode=10**400), "episode"),
        (about(parameters={"horizon": 10**400}), "horizon"),
        (about(parameters={"horizon": 5, "eta": 10**400}), "x.npz: a learner with missing or invalid parts .Overflow"),
        (about(parameters=[]), "x.npz: a learner with missing or invalid parts .TypeError"),
        (about(learner=["UCOREPS"]), "x.npz: a learner with missing or invalid parts .TypeError"),
        (about(state_names="names"), "state_names"),
        (about(state_names=["a"]), "state_names"),
        (lambda about, arrays: about.pop("criterion"), "x.npz: a learner with missing or invalid parts .KeyError"),
        (lambda about, arrays: arrays.pop("state/log_q"), "log_q"),
        (lambda about, arrays: arrays.pop("skeleton/pair_ptr"), "pair_ptr"),
        (lambda about, arrays: arrays.update({"state/q": arrays["state/policy"]}), "state of UCOREPS, q: shape"),
        (lambda about, arrays: arrays.update({"skeleton/pair_ptr": np.zeros((2, 2))}), "pair_ptr"),
    ],
)
def test_a_foreign_file_is_refused_and_says_what_is_wrong(tmp_path: Path, change, message: str) -> None:
    path = tmp_path / "x.npz"
    am.UCOREPS(DENSE.skeleton, horizon=5).save(path)
    forge(path, change)
    with pytest.raises(am.InputError, match=message):
        am.load_learner(path)


def test_nothing_in_a_file_is_ever_run(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, about=np.array([{"kind": "learner"}], dtype=object))
    with pytest.raises(am.InputError, match="damaged, or another kind of file"):
        am.load_learner(path)
    with pytest.raises(am.InputError, match="no such file"):
        am.load_learner(tmp_path / "none.npz")
    with pytest.raises(am.InputError, match="the folder .* does not exist"):
        am.UCOREPS(DENSE.skeleton, horizon=5).save(tmp_path / "no" / "such" / "folder.npz")


@pytest.mark.parametrize(
    "bad",
    [
        {"horizon": 0}, {"horizon": 2.5}, {"eta": 0.0}, {"eta": "fast"}, {"eta": np.nan}, {"delta": 0.0},
        {"delta": 1.0},
        {"confidence": "l2"}, {"confidence_scale": 0.0}, {"confidence_scale": np.inf}, {"successors": "all"},
        {"share": -0.1}, {"share": 1.1}, {"criterion": "total"}, {"kinds": [0] * 14},
        {"kinds": [0] * 3, "confidence": "pointwise"},
    ],
)  # fmt: skip
def test_parameters_are_checked(bad: dict) -> None:
    with pytest.raises(am.InputError, match=next(iter(bad))):
        am.UCOREPS(DENSE.skeleton, **{"horizon": 10, **bad})


def test_a_trajectory_of_another_world_and_a_loss_of_another_shape_are_refused() -> None:
    learner = am.UCOREPS(DENSE.skeleton, horizon=10)
    good = DENSE.sample(learner.policy, np.random.default_rng(0))
    for path in ([0, 0, 0], [10**6, 0, 0], [-1, 0, 0], good.transitions[:2]):
        with pytest.raises(am.InputError, match="trajectory"):
            learner.update(am.Trajectory(good.states, good.pairs, np.array(path)), np.zeros(22))
    with pytest.raises(am.InputError, match="loss"):
        learner.update(good, np.zeros(3))
    assert learner.episode == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_nan_loss_is_an_error(bad: float) -> None:
    learner = am.UCOREPS(DENSE.skeleton, horizon=10)
    loss = np.zeros(DENSE.skeleton.num_transitions)
    loss[4] = bad
    before = learner.state()["log_q"].copy()
    with pytest.raises(am.AdvMDPError):
        learner.update(DENSE.sample(learner.policy, np.random.default_rng(0)), loss)
    assert np.array_equal(learner.state()["log_q"], before)


def test_a_step_beyond_the_range_of_logarithms_is_a_clear_error() -> None:
    mdp = am.MDP.random([1, 3, 3, 1], 2, seed=0)
    with pytest.raises(am.InputError, match=r"after episode \d+.*log weights beyond 1e\+08.*a smaller eta"):
        am.play(mdp, am.losses.Stochastic(mdp.skeleton, seed=0), am.UCOREPS(mdp.skeleton, horizon=1000, eta=1e7), 100)


@pytest.mark.parametrize("learner", [am.UCOREPS, am.UOBREPS])
def test_every_set_can_be_chosen_and_is_that_of_its_name(learner: type[am.UCOREPS | am.UOBREPS]) -> None:
    """The learners keep their own as the default, and the sets tighten in the order in which they must."""
    sk, T = DENSE.skeleton, 300
    losses = am.losses.Stochastic(sk, seed=1)
    for confidence in CHOICES:
        one = learner(sk, T, confidence=confidence, delta=0.1, confidence_scale=0.3)
        am.play(DENSE, losses, one, T)
        expected = confidence_set(confidence, sk, one.counts, T, 0.1, 0.3)
        for name, array in vars(expected).items():
            assert getattr(one.row_set, name).tobytes() == array.tobytes()
        assert one.parameters["confidence"] == confidence
    radii = {confidence: confidence_set(confidence, sk, one.counts, T, 0.1).radii(sk).mean() for confidence in CHOICES}
    assert radii["pointwise"] < radii["chernoff"] < radii["weissman"] < radii["l1"]
    default = "l1" if learner is am.UCOREPS else "bernstein"
    assert learner(sk, T).confidence == default


def test_kinds_are_parameters_that_json_can_hold() -> None:
    sk = SPARSE.skeleton
    learner = am.UOBREPS(sk, 50, confidence="pointwise", kinds=WIDTHS)
    assert json.loads(json.dumps(learner.parameters))["kinds"] == WIDTHS.tolist()
    am.play(SPARSE, am.losses.Stochastic(sk, seed=1), learner, 50)
    expected = pointwise_set(sk, learner.counts, 1.0, Kinds.of(sk, WIDTHS))
    assert learner.row_set.center.tobytes() == expected.center.tobytes()
    assert learner.row_set.radius.tobytes() == expected.radius.tobytes()
    assert am.UCOREPS(sk, 50).kinds is None
    with pytest.raises(am.InputError, match="kinds: labels, with confidence='l1'; expected confidence='pointwise'"):
        am.UCOREPS(sk, 50, kinds=WIDTHS)


def test_with_tighter_sets_it_pays_less() -> None:
    """Against losses that react, in a world of sparse rows: Weissman's sets, then Chernoff's, then pointwise ones."""
    mdp = am.MDP.random([1, 8, 8, 8, 1], 4, seed=0, branching=2)
    sk, T = mdp.skeleton, 1500

    def regret(confidence: str) -> float:
        learners = [am.UCOREPS(sk, T, eta=5 * am.bounds.eta(sk, T), confidence=confidence) for _ in range(2)]
        games = [am.play(mdp, am.losses.Adaptive(sk, seed=s), one, T, seed=s) for s, one in enumerate(learners)]
        return float(np.mean([game.regret for game in games]))

    found = [regret(confidence) for confidence in ("l1", "weissman", "chernoff", "pointwise")]
    assert found == sorted(found, reverse=True)
    assert found[1] < 0.8 * found[0]
    assert found[3] < 0.5 * found[0]
