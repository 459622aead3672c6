"""Policy regret: the cost of fixed policies if losses react to them, by simulation, formulas and brute force."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

import advmdp as am
from advmdp.game import policy_regret as module
from advmdp.planning import linear_reaction
from advmdp.planning.reacting import best_against_adaptive
from tests.helpers.cvx import cp
from tests.helpers.oracles import policies
from tests.helpers.strategies import build_mdp, random_policy

MDP = build_mdp([1, 2, 3, 1], np.random.default_rng(1), 3, zeros=True)
SK = MDP.skeleton
ADAPTIVE = am.losses.Adaptive(SK, seed=3, memory=3)
CHOICE = am.MDP.from_steps([("home", "bus", "work", 1.0), ("home", "bike", "work", 1.0)])
POLICIES = [random_policy(SK, np.random.default_rng(seed)) for seed in range(3)]


class Crowded(am.losses.Losses):
    """l_t = a + b q_{t-1} over transitions, plus a wave: losses written in Python that react to the last policy."""

    memory = 1

    def __init__(self, mdp: am.MDP, weight: float = 0.5) -> None:
        super().__init__(mdp.skeleton)
        self.mdp, self.weight = mdp, weight
        self.free = np.random.default_rng(5).random(self.shape) * 0.3

    def _block(self, first, stop, policies):
        rows = []
        for t in range(first, stop):
            last = am.uniform_policy(self.skeleton) if t == 0 else policies[t - 1]
            wave = 0.1 + 0.1 * np.sin(t + np.arange(len(self.free)))
            rows.append(self.free + self.weight * am.occupancy(self.mdp, last) + wave)
        return np.array(rows)


class Subclass(am.losses.Adaptive):
    """The same losses, of which nothing is assumed."""


def simulated(mdp: am.MDP, losses: am.losses.Losses, criterion: am.Criterion, policy: np.ndarray, T: int) -> float:
    q, past = am.occupancy(mdp, policy), dict.fromkeys(range(T), policy)
    return sum(criterion.value(mdp.skeleton, q, losses.at(t, past)) for t in range(T))


@pytest.mark.parametrize(
    ("losses", "criterion"),
    [
        (ADAPTIVE, am.TotalLoss()),
        (ADAPTIVE, am.Risk(0.5, 2.0)),
        (am.losses.Adaptive(SK, seed=1, dimensions=2), am.WorstCase()),
        (Crowded(MDP), am.TotalLoss()),
        (Crowded(MDP), am.Risk(0.3, 3.0)),
        (am.losses.Switching(SK, period=7, seed=3), am.TotalLoss()),
    ],
    ids=repr,
)
def test_the_cost_of_a_policy_equals_that_of_a_simulation(losses: am.losses.Losses, criterion: am.Criterion) -> None:
    learner = am.UCOREPS(SK, horizon=150, eta=0.2, criterion=criterion)
    game = am.play(MDP, losses, learner, 150, seed=4, comparator_gap=1e-2)
    found = game.policy_regret(POLICIES)
    assert_allclose(found.paid, [simulated(MDP, losses, criterion, one, 150) for one in POLICIES], rtol=1e-12)
    assert found.regret == game.total_loss - min(found.paid)
    assert found.policies.shape == (3, SK.num_pairs)


@pytest.mark.parametrize("memory", [1, 2, 50])
def test_adaptive_losses_without_noise_have_a_closed_form(memory: int) -> None:
    losses = am.losses.Adaptive(SK, seed=2, strength=0.7, memory=memory, noise=0.0)
    game = am.play(MDP, losses, am.FollowLeader(SK), 40)
    for policy in POLICIES:
        q = am.occupancy(MDP, policy)
        first, later = (0.3 * losses.base + 0.7 * SK.over_transitions(p) for p in (am.uniform_policy(SK), policy))
        assert_allclose(game.policy_regret(policy).paid, [q @ first + 39 * (q @ later)], rtol=1e-12)


def test_the_learners_own_policy_pays_what_the_learner_paid() -> None:
    game = am.play(MDP, ADAPTIVE, am.Uniform(SK), 300, seed=7)
    assert game.policy_regret(am.uniform_policy(SK)).regret == 0.0  # to the bit: it is the same game


@pytest.mark.parametrize("losses", [am.losses.Switching(SK, period=7, seed=3), am.losses.Drifting(SK, period=20)])
def test_it_is_ordinary_regret_where_losses_do_not_react(losses: am.losses.Losses) -> None:
    game = am.play(MDP, losses, am.UCOREPS(SK, horizon=100), 100)
    found = game.policy_regret(policies(SK))
    assert_allclose(found.regret, game.regret, atol=1e-10)
    best = game.best_fixed_policy()
    assert_allclose([best.paid, best.lower, best.regret], [game.comparator.value] * 2 + [game.regret], atol=1e-10)
    assert "do not react" in best.searched
    assert best.replays == 0


def test_regret_against_provoked_losses_is_no_saving() -> None:
    """What the page says: regret may rank players one way, and what they paid the other way."""
    losses = am.losses.Adaptive(CHOICE.skeleton, seed=1, strength=0.8, noise=0.0)
    games = [
        am.play(CHOICE, losses, one, 1000) for one in (am.Uniform(CHOICE.skeleton), am.ReplayLast(CHOICE.skeleton))
    ]
    even = [game.policy_regret(am.uniform_policy(CHOICE.skeleton)) for game in games]
    assert even[0].regret == 0.0
    assert games[0].regret > 10.0
    assert_allclose(even[0].paid, even[1].paid)


@pytest.mark.parametrize("noise", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("strength", [0.0, 1e-300, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("T", [1, 2, 3, 10, 200])
def test_the_best_of_one_choice_is_the_best_of_a_fine_grid(noise: float, strength: float, T: int) -> None:
    """One state and two actions: all policies, as good as."""
    sk = CHOICE.skeleton
    grid = np.linspace(0.0, 1.0, 2001)
    for seed in range(3):
        losses = am.losses.Adaptive(sk, seed=seed, strength=strength, noise=noise)
        draws = np.array([(losses.at(t, [am.uniform_policy(sk)] * T)) for t in range(T)])
        mean = (1 - strength) * losses.base + strength * 0.5
        wiggle = (draws[1:] - mean).sum(axis=0) / np.minimum(mean, 1 - mean)  # sum of noise (2 u - 1)
        m = (1 - strength) * losses.base + strength * np.stack([grid, 1 - grid], axis=1)
        cost = draws[0] + (T - 1) * m + wiggle * np.minimum(m, 1 - m)
        least = float((np.stack([grid, 1 - grid], axis=1) * cost).sum(axis=1).min())
        policy, lower = best_against_adaptive(CHOICE, losses, T)
        best = am.play(CHOICE, losses, am.Uniform(sk), T).best_fixed_policy()
        assert lower <= least + 1e-9
        assert lower <= best.paid + 1e-9
        assert abs(best.paid - least) <= 1e-3 * T  # what the grid may miss
        assert_allclose(best.policy, policy)
        assert best.gap < 0.02


@pytest.mark.parametrize("seed", range(6))
def test_no_policy_of_a_small_world_pays_less_than_the_bound(seed: int) -> None:
    """All deterministic policies, many others, and small changes of the best."""
    rng = np.random.default_rng(seed)
    mdp = build_mdp([1, 2, 2, 1], rng, 2, zeros=bool(seed % 2))
    sk, T = mdp.skeleton, int(rng.choice([2, 5, 60]))
    losses = am.losses.Adaptive(sk, seed=seed, strength=rng.uniform(0.2, 1.0), memory=2, noise=rng.uniform(0, 1))
    game = am.play(mdp, losses, am.UCOREPS(sk, horizon=T), T)
    best = game.best_fixed_policy()
    lower = best_against_adaptive(mdp, losses, T)[1]
    near = [0.98 * best.policy + 0.02 * random_policy(sk, rng) for _ in range(30)]
    tried = game.policy_regret([*policies(sk), *(random_policy(sk, rng) for _ in range(100)), *near])
    assert lower <= min(tried.paid.min(), best.paid) + 1e-9
    assert best.paid <= tried.paid.min() + best.gap * best.paid + 1e-9
    assert best.gap < (1e-4 if T == 60 else 0.02)
    assert best.regret <= best.regret_at_most


@pytest.mark.parametrize("seed", range(4))
def test_a_conic_solver_finds_the_same_without_noise(seed: int) -> None:
    """In occupancy measures: <x, first + N alpha> + N s sum x(x, a)^2 / mu(x), which is convex."""
    mdp = build_mdp([1, 3, 4, 1], np.random.default_rng(seed), 3, zeros=True)
    sk, T = mdp.skeleton, 500
    losses = am.losses.Adaptive(sk, seed=seed, strength=0.6, noise=0.0)
    x, owner = cp.Variable(sk.num_pairs, nonneg=True), sk.state_of_pair
    leaving = np.arange(sk.num_states - 1)[:, None] == owner
    entering = np.zeros((sk.num_states, sk.num_pairs))
    np.add.at(entering, (sk.successor, sk.over_transitions(np.arange(sk.num_pairs))), mdp.transition)
    start = np.eye(sk.num_states - 1)[0]
    base, even = losses.base[sk.transition_ptr[:-1]], am.uniform_policy(sk)
    straight = T * 0.4 * base + 0.6 * even
    squares = [
        cp.quad_over_lin(x[p], cp.sum(x[sk.pair_ptr[owner[p]] : sk.pair_ptr[owner[p] + 1]])) for p in range(len(owner))
    ]
    cost = straight @ x + (T - 1) * 0.6 * cp.sum(squares)
    least = cp.Problem(cp.Minimize(cost), [leaving @ x - entering[:-1] @ x == start]).solve(solver=cp.CLARABEL)
    best = am.play(mdp, losses, am.Uniform(sk), T).best_fixed_policy()
    assert_allclose([best.paid, best.lower], least, rtol=1e-6)
    assert best.gap < 1e-12


def test_a_local_search_comes_near_what_is_proven() -> None:
    known, unknown = (kind(SK, seed=1, strength=0.8) for kind in (am.losses.Adaptive, Subclass))
    games = [am.play(MDP, losses, am.UCOREPS(SK, horizon=300, eta=0.1), 300) for losses in (known, unknown)]
    best, found = (game.best_fixed_policy() for game in games)
    assert best.lower <= found.paid <= best.paid * 1.001
    assert found.lower == -np.inf
    assert found.gap == found.regret_at_most == np.inf
    assert f"{found.replays} games" in found.searched
    assert "no lower bound" in repr(found)
    assert "at least" in repr(best)


@pytest.mark.parametrize(
    ("losses", "criterion"),
    [(Crowded(MDP), am.TotalLoss()), (am.losses.Adaptive(SK, seed=1, dimensions=2), am.WorstCase())],
    ids=repr,
)
def test_a_local_search_keeps_to_its_games_and_can_be_repeated(
    losses: am.losses.Losses, criterion: am.Criterion
) -> None:
    game = am.play(MDP, losses, am.UCOREPS(SK, horizon=30, criterion=criterion), 30)
    few, more, same = (game.best_fixed_policy(starts=6, replays=replays) for replays in (6, 40, 40))
    assert (few.replays, more.replays) == (6, 40)
    assert more.paid < few.paid
    assert more.policy.tobytes() == same.policy.tobytes()
    assert_allclose(more.paid, simulated(MDP, losses, criterion, more.policy, 30), rtol=1e-12)
    assert few.paid <= game.policy_regret([am.uniform_policy(SK), game.comparator.policy]).paid.min()
    assert game.best_fixed_policy(starts=6, replays=40, seed=1).searched == more.searched


def test_a_local_search_finds_the_best_of_one_choice() -> None:
    losses = Crowded(CHOICE, 0.5)
    game = am.play(CHOICE, losses, am.ReplayLast(CHOICE.skeleton), 50)
    grid = game.policy_regret([(p, 1 - p) for p in np.linspace(0, 1, 201)])
    assert game.best_fixed_policy().paid <= grid.paid.min() + 1e-3


def test_policies_come_as_one_a_list_or_a_dictionary() -> None:
    game = am.play(MDP, ADAPTIVE, am.FollowLeader(SK), 20)
    alone = game.policy_regret(POLICIES[0])
    assert alone.names == ("policy",)
    assert alone.paid.shape == (1,)
    rows = [
        game.policy_regret(many) for many in (POLICIES, np.array(POLICIES), dict(zip("abc", POLICIES, strict=True)))
    ]
    assert all(one.paid.tobytes() == rows[0].paid.tobytes() for one in rows)
    assert rows[0].names == ("0", "1", "2")
    named = rows[2]
    assert named.best == "abc"[int(np.argmin(named.paid))]
    assert named.table.rows() == [
        (name, paid, game.total_loss - paid) for name, paid in zip("abc", named.paid.tolist(), strict=True)
    ]
    assert repr(named).startswith(
        f"PolicyRegret(FollowLeader paid {game.total_loss:,.2f} in 20 episodes; fixed policies"
    )
    assert f"policy regret {named.regret:+,.2f} against {named.best})" in repr(named)
    assert "and 5 more" in repr(game.policy_regret(POLICIES * 3))
    with pytest.raises(ValueError, match="read-only"):
        named.paid[0] = 0.0


def test_policies_may_be_given_by_name() -> None:
    steps = [("home", "bus", "station", 1.0), ("home", "walk", "station", 1.0),
             ("station", "train", "work", 1.0), ("station", "taxi", "work", 1.0)]  # fmt: skip
    mdp = am.MDP.from_steps(steps)
    game = am.play(mdp, am.losses.Stochastic(mdp.skeleton, seed=1), am.Uniform(mdp.skeleton), 20)
    named = {"home": "walk", "station": {"train": 0.25, "taxi": 0.75}}
    wanted = game.policy_regret(np.array([0.0, 1.0, 0.25, 0.75]))
    for given, names in ((named, ("policy",)), ([named], ("0",)), ({"mine": named}, ("mine",))):
        found = game.policy_regret(given)
        assert found.names == names
        assert found.paid.tobytes() == wanted.paid.tobytes()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (3, "policies: 3; expected an array of"),
        ("search", "policies: 'search'"),
        ([], "policies: none; expected one or more"),
        ({}, "policies: none"),
        ({"bus": [1.0]}, "policies, 'bus': an array of shape"),
        ([POLICIES[0], 2 * POLICIES[1]], "policies, '1', layer 0, state 0: .* sums to 2"),
        (np.full(SK.num_pairs, np.nan), "policies, 'policy', "),
        (["bus"], "expected real numbers"),
        ([None], "policies, '0'|policies, 'policy'"),
    ],
)
def test_invalid_policies_are_refused(given: object, said: str) -> None:
    game = am.play(MDP, ADAPTIVE, am.Uniform(SK), 5)
    with pytest.raises(am.InputError, match=said):
        game.policy_regret(given)


@pytest.mark.parametrize("wrong", [{"replays": 0}, {"starts": 0}, {"seed": -1}, {"replays": 2.5}])
def test_invalid_searches_are_refused(wrong: dict) -> None:
    game = am.play(MDP, ADAPTIVE, am.Uniform(SK), 5)
    with pytest.raises(am.InputError, match=next(iter(wrong))):
        game.best_fixed_policy(**wrong)


def test_progress_counts_the_episodes_of_all_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    game = am.play(MDP, ADAPTIVE, am.Uniform(SK), 20)
    seen: list[float] = []
    game.policy_regret(POLICIES, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 60
    bars = []
    monkeypatch.setattr(module, "shown", lambda progress, count, title: bars.append((progress, count)) or _silent())
    game.policy_regret(POLICIES)
    monkeypatch.setattr(module, "LONG", 0)
    game.policy_regret(POLICIES)
    assert bars == [(False, 60), (True, 60)]


def _silent():
    from advmdp.game.progress import shown

    return shown(False, 1)


def test_a_game_from_a_checkpoint_can_be_compared_too(tmp_path) -> None:
    path = tmp_path / "game.npz"
    games = [am.play(MDP, ADAPTIVE, am.FollowLeader(SK), T, checkpoint=path) for T in (10, 30)]
    whole = am.play(MDP, ADAPTIVE, am.FollowLeader(SK), 30)
    assert games[1].policy_regret(POLICIES).paid.tobytes() == whole.policy_regret(POLICIES).paid.tobytes()


def test_the_choice_of_pieces_is_exact_up_to_its_gap_with_three_actions() -> None:
    """Few episodes and much noise, where kinks matter: a grid over one state's three actions."""
    mdp = am.MDP.from_steps([("a", action, "b", 1.0) for action in "xyz"])
    sk, grid = mdp.skeleton, np.linspace(0, 1, 41)
    points = [(p, r, 1 - p - r) for p, r in product(grid, grid) if p + r <= 1 + 1e-12]
    points = [np.maximum(point, 0) / np.maximum(point, 0).sum() for point in points]
    for seed in range(4):
        losses = am.losses.Adaptive(sk, seed=seed, strength=0.9, noise=1.0)
        game = am.play(mdp, losses, am.Uniform(sk), 3)
        best, least = game.best_fixed_policy(), game.policy_regret(points).paid.min()
        assert best.lower - 1e-9 <= least
        assert best.paid <= least + 0.01


class Linear(am.losses.Losses):
    """l_t = a + B x_{t-1} over pairs, with x the visits of the last policy; it says so, or says something wrong."""

    memory = 1

    def __init__(self, mdp: am.MDP, matrix: np.ndarray, wrong: float = 0.0) -> None:
        super().__init__(mdp.skeleton)
        self.mdp, self.matrix, self.wrong = mdp, matrix, wrong
        self.free = 0.4 + 0.2 * np.random.default_rng(7).random(self.skeleton.num_pairs)

    def loss(self, policy: np.ndarray) -> np.ndarray:
        return self.free + self.matrix @ visits(self.mdp, policy)

    def _block(self, first, stop, policies):
        past = [am.uniform_policy(self.skeleton) if t == 0 else policies[t - 1] for t in range(first, stop)]
        return np.array([self.skeleton.over_transitions(self.loss(one)) for one in past])

    def linear_reaction(self, mdp, episodes):
        first = self.loss(am.uniform_policy(mdp.skeleton))
        return first + (episodes - 1) * self.free + self.wrong, (episodes - 1) * self.matrix


def visits(mdp: am.MDP, policy: np.ndarray) -> np.ndarray:
    return np.add.reduceat(am.occupancy(mdp, policy), mdp.skeleton.transition_ptr[:-1])


def matrix(kind: str, pairs: int, rng: np.random.Generator) -> np.ndarray:
    """Rows that sum to less than what the losses have room for."""
    drawn = rng.uniform(-1.0, 1.0, (pairs, pairs))
    drawn = {"convex": drawn @ drawn.T, "concave": -drawn @ drawn.T, "neither": drawn}[kind]
    return 0.3 * drawn / np.abs(drawn).max() / 3.0  # three steps: the visits sum to 3


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["convex", "concave", "neither"])
def test_linear_reactions_give_a_lower_bound_for_all_policies(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = build_mdp([1, 2, 2, 1], rng, 2, zeros=True)
    losses = Linear(mdp, matrix(kind, mdp.skeleton.num_pairs, rng))
    game = am.play(mdp, losses, am.ReplayLast(mdp.skeleton), 40)
    best = game.best_fixed_policy()
    others = [random_policy(mdp.skeleton, rng) for _ in range(200)]
    near = [0.99 * best.policy + 0.01 * one for one in others]
    tried = game.policy_regret([*policies(mdp.skeleton), *others, *near]).paid
    assert best.lower <= tried.min() + 1e-9
    assert best.paid <= tried.min() + 1e-9
    assert "Frank-Wolfe from 9 starting points" in best.searched
    if kind == "convex":
        assert best.gap < 1e-8
    if kind == "concave":  # then a deterministic policy is best
        assert_allclose(best.paid, game.policy_regret(policies(mdp.skeleton)).paid.min(), rtol=1e-12)
    assert best.gap < 0.2


def test_a_declared_reaction_that_does_not_match_the_losses_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    still = np.zeros((SK.num_pairs, SK.num_pairs))
    game = am.play(MDP, Linear(MDP, still, wrong=0.1), am.Uniform(SK), 10)
    with pytest.raises(am.InputError, match="linear_reaction of Linear.* for a policy that pays"):
        game.best_fixed_policy()
    monkeypatch.setattr(Linear, "linear_reaction", lambda *_: (np.ones(2), still))
    with pytest.raises(am.InputError, match="shape"):
        game.best_fixed_policy()
    monkeypatch.setattr(Linear, "linear_reaction", lambda *_: (np.full(SK.num_pairs, np.nan), still))
    with pytest.raises(am.InputError, match="finite"):
        game.best_fixed_policy()
    monkeypatch.setattr(linear_reaction, "MOST_PAIRS", 2)
    with pytest.raises(am.InputError, match="at most 2 pairs, or None"):
        game.best_fixed_policy()
