"""SelfTuning against a mixture written out in NumPy, against UC-O-REPS, and in worlds where simple rules fail."""

import time
from math import inf, log

import numpy as np
import pytest
from numpy.testing import assert_allclose

import advmdp as am
from advmdp.core import threads
from advmdp.learners import self_tuning
from advmdp.learners.kernels.mixture import Mixture
from advmdp.learners.pool import FIRST
from advmdp.learners.self_tuning import SelfTuning, threads_for

MDP = am.MDP.random([1, 3, 4, 1], 3, seed=4)
SK = MDP.skeleton


def in_layers(x: np.ndarray, of: np.ufunc) -> np.ndarray:
    return of.reduceat(x, SK.layer_transition_ptr[:-1])


def reduced(z: np.ndarray) -> np.ndarray:
    return z - np.repeat(in_layers(z, np.minimum), np.diff(SK.layer_transition_ptr))


def narrow_set(learner: SelfTuning) -> am.L1Ball:
    """The set of all experts but UC-O-REPS, pair by pair; with a guarantee, within the set of that."""
    counts, center, radii = learner.counts, np.zeros(SK.num_transitions), []
    for p in range(SK.num_pairs):
        row, N = slice(SK.transition_ptr[p], SK.transition_ptr[p + 1]), int(counts.visits[p])
        seen = counts.seen[row]
        likely = (seen + 1 / len(seen)) / (N + 1)
        if len(seen) == 1 or N == 0:
            radii.append(0.0 if len(seen) == 1 else 2.0)
            center[row] = float(len(seen) == 1)
            continue
        radius = sum(np.sqrt(q * (1 - q) / N) for q in likely)
        radii.append(min(radius, learner.row_set.radius[p]) if learner.guarantee else radius)
        center[row] = seen / N
    return am.L1Ball(center, radii)


class Reference:
    """The algorithm of docs/selftuning.md without UC-O-REPS, for the total loss, from all losses so far."""

    def __init__(self, learner: SelfTuning) -> None:
        self.experts, self.losses, self.epoch, self.rested = learner._experts, [], 0, 0
        self.believed, self.gaps, self.squares = np.zeros(len(self.experts)), 0.0, 0.0
        L, X, A = SK.num_steps, SK.num_states, SK.num_actions
        self.scale = L * np.sqrt(np.log(X**2 * A / L**2))
        widths = np.diff(SK.layer_transition_ptr)
        self.start = np.repeat(-np.log(widths), widths)

    def signal(self, name: str, period: int) -> np.ndarray:
        x, t = np.array(self.losses), len(self.losses)
        kind = name.split(" x", maxsplit=1)[0]
        if t == 0:
            return np.zeros(SK.num_transitions)
        if kind == "all":
            return x.sum(axis=0)
        if kind == "smoothed":
            return sum(0.2 * 0.8 ** (t - 1 - s) * x[s] for s in range(t))
        if kind == "last":
            return x[-1]
        if kind == "found":
            return self.found(x)
        same = x[t % period :: period]
        if len(same) == 0:
            return np.zeros(SK.num_transitions)
        return same.mean(axis=0) if kind.startswith("mean") else same[-1]

    def found(self, x: np.ndarray) -> np.ndarray:
        t, errors = len(x), {}
        for lag in range(1, t):
            apart = [((x[s] - x[s - lag]) ** 2).sum() for s in range(lag, t)]
            keep = 0.99 ** np.arange(len(apart))[::-1]
            errors[lag] = keep @ apart / keep.sum()
        best = min(errors, key=errors.get) if errors else 1
        return np.mean([x[t - back] for back in range(best, t + 1, best)], axis=0)

    def measures(self, learner: SelfTuning) -> np.ndarray:
        """One for each expert; without weight it keeps its measure, but for each tenth episode and new sets."""
        t, found, weights = max(1, len(self.losses)), [], self.weights()
        all_due = len(self.losses) % 10 == 0 or learner.epochs != self.epoch
        self.epoch = learner.epochs
        for e, expert in enumerate(self.experts):
            if weights[e] < 2.0**-53 and not all_due:
                found.append(self.kept[e])
                self.rested += 1
                continue
            squares = self.squares if expert.name.startswith("all") else self.squares / t
            eta = self.scale * expert.pace / np.sqrt(squares) if squares > 0 else 0.0
            log_weights = self.start - eta * self.signal(expert.name, expert.period)
            found.append(am.project(SK, log_weights, narrow_set(learner)).q)
        self.kept = np.array(found)
        return self.kept

    def weights(self) -> np.ndarray:
        excess = self.believed - self.believed.min()
        weights = np.exp(-log(len(excess)) / self.gaps * excess) if self.gaps > 0 else (excess == 0).astype(float)
        return weights / weights.sum()

    def learn(self, z: np.ndarray, measures: np.ndarray) -> None:
        x, p = reduced(z), self.weights()
        paid = np.round(measures @ x, 12)  # before the first loss all experts are the same, and must pay the same
        if self.gaps > 0:
            eta = log(len(p)) / self.gaps
            mixed = paid.min() - np.log(p @ np.exp(-eta * (paid - paid.min()))) / eta
        else:
            mixed = paid[p > 0].min()
        self.gaps += max(0.0, p @ paid - mixed)
        self.believed += paid
        spans = [in_layers(one, np.maximum).sum() for one in self.losses[-25:]]
        span, usual = in_layers(x, np.maximum).sum(), sorted(spans)[len(spans) // 2] if spans else 0.0
        self.squares += (min(span, 10.0 * usual) if usual > 0 else span) ** 2
        self.losses.append(x)


@pytest.mark.parametrize("guarantee", [False, True])
@pytest.mark.parametrize("kind", ["noise", "heavy tails", "a rhythm"])
def test_the_mixture_is_the_one_written_out_in_numpy(kind: str, guarantee: bool) -> None:
    rng = np.random.default_rng(1)
    names = [name for name in SelfTuning(SK, periods=(3,)).experts if name not in (FIRST, "hint")]
    learner = SelfTuning(SK, periods=(3,), experts=names, guarantee=guarantee)
    reference, base = Reference(learner), rng.random((4, SK.num_transitions))
    for t in range(60):
        loss = {
            "noise": lambda: rng.random(SK.num_transitions),
            "heavy tails": lambda t=t: base[0] * rng.random(SK.num_transitions) * (1.0 if t in (20, 41) else 0.01),
            "a rhythm": lambda t=t: np.clip(base[t % 4] + 0.1 * rng.random(SK.num_transitions), 0.0, 1.0),
        }[kind]()
        measures = reference.measures(learner)
        assert_allclose(learner.weights, reference.weights(), atol=1e-6)
        assert_allclose(learner.q, reference.weights() @ measures, atol=1e-6)
        assert_allclose(learner.policy, am.policy_of(SK, learner.q), atol=1e-9)
        learner.update(MDP.sample(learner.policy, rng), loss)
        reference.learn(loss, measures)
        assert_allclose(learner.believed, reference.believed, rtol=1e-6)
        assert learner.mixing_cost == pytest.approx(2.0 * reference.gaps, rel=1e-5)
    assert (reference.rested > 0) == (kind != "noise")


CRITERIA = [am.TotalLoss(), am.Risk(0.5, 2.0), am.WorstCase(), 0.5 * am.TotalLoss() + am.Risk(1.0, 3.0)]


@pytest.mark.parametrize("criterion", CRITERIA, ids=repr)
@pytest.mark.parametrize("horizon", [None, 80])
@pytest.mark.parametrize(("guarantee", "confidence"), [(True, "chernoff"), (False, "pointwise")])
def test_with_one_expert_it_is_uc_o_reps_to_the_bit(criterion, horizon, guarantee, confidence) -> None:
    losses = am.losses.Adaptive(SK, seed=2, strength=0.8)
    one = SelfTuning(SK, horizon, criterion, guarantee=guarantee, experts=[FIRST])
    other = am.UCOREPS(SK, horizon, criterion, confidence=confidence)
    games = [am.play(MDP, losses, learner, 80, seed=3) for learner in (one, other)]
    assert one.q.tobytes() == other.q.tobytes()
    assert one.policy.tobytes() == other.policy.tobytes()
    assert games[0].total_loss == games[1].total_loss


@pytest.mark.parametrize("criterion", CRITERIA[:2], ids=repr)
def test_mixing_costs_no_more_than_its_certificate(criterion: am.Criterion) -> None:
    for seed in range(3):
        for losses in (am.losses.Stochastic(SK, seed=seed), am.losses.Switching(SK, period=9, seed=seed)):
            learner = SelfTuning(SK, criterion=criterion)
            am.play(MDP, losses, learner, 300, seed=seed)
            assert learner.believed_by_mixture - learner.believed.min() <= learner.mixing_cost + 1e-9
            assert learner.mixing_cost > 0


def test_the_certificate_holds_with_experts_that_sleep() -> None:
    """Hints in some episodes only; they are charged as the mixture in the others."""
    rng, T = np.random.default_rng(3), 400
    learner = SelfTuning(SK, periods=())
    for _ in range(T):
        loss = SK.over_transitions(rng.random(SK.num_pairs))
        if rng.random() < 0.3:
            learner.hint(loss if rng.random() < 0.7 else 1.0 - loss)
        learner.update(MDP.sample(learner.policy, rng), loss)
        paid, least, most = learner.believed_by_mixture, learner.believed.min(), learner.mixing_cost
        assert paid - least <= most + 1e-9
    assert most <= SK.num_steps * (np.sqrt(T * np.log(len(learner.experts))) + 2.0)


@pytest.mark.parametrize("experts", [None, [FIRST, "last x100"]], ids=repr)
def test_the_certificate_holds_when_a_weight_that_underflowed_returns(experts: list[str] | None) -> None:
    """Small losses leave one expert with all the weight; then every loss hits what the mixture prefers."""
    world, T = am.MDP.random([1, 1], 2, seed=0), 2500
    rng, learner = np.random.default_rng(0), SelfTuning(world.skeleton, T, guarantee=True, experts=experts)
    for t in range(T):
        if t == 2000:
            assert 0.0 in learner.weights[:-1]
            assert learner.mixing_cost < 1e-5
        loss = np.array([0.0, 1e-6]) if t < 2000 else np.where(learner.q >= learner.q.max(), 1.0, 0.0)
        learner.update(world.sample(learner.policy, rng), loss)
        cost = learner.believed_by_mixture - learner.believed.min()
        assert cost <= learner.mixing_cost + 1e-9
    assert cost > 0.5
    assert learner.mixing_cost <= np.sqrt(T * np.log(len(learner.experts))) + 2.0


def test_losses_may_grow_from_rounding_errors_to_one() -> None:
    """Equal costs that differ in the last digit have tiny spans, and so steps that no ordinary loss can take."""
    rng, learner, paid, least = (
        np.random.default_rng(0),
        SelfTuning(SK, rules={"mine": am.uniform_policy(SK)}),
        0.0,
        0.0,
    )
    for t in range(300):
        loss = rng.choice([0.3, 0.1 + 0.2], SK.num_transitions) if t < 5 else np.linspace(0.0, 1.0, SK.num_transitions)
        if t == 100:  # and shrink again
            loss = loss * 1e-12
        learner.hint(loss)
        paid += am.occupancy(MDP, learner.policy) @ loss
        least += am.best_response(MDP, loss)[1]
        learner.update(MDP.sample(learner.policy, rng), loss)
    uniform = am.occupancy(MDP, am.uniform_policy(SK)) @ np.linspace(0.0, 1.0, SK.num_transitions)
    assert paid - least < 0.1 * (300 * uniform - least)
    assert learner.believed_by_mixture - learner.believed.min() <= learner.mixing_cost + 1e-9


def test_units_do_not_matter() -> None:
    """Losses a thousand times smaller give the same policies: steps are relative to what losses vary by."""
    rng = np.random.default_rng(0)
    losses = rng.random((50, SK.num_transitions))
    names = [name for name in SelfTuning(SK).experts if name != FIRST]
    large, small = (SelfTuning(SK, experts=names) for _ in range(2))
    for loss in losses:
        path = MDP.sample(large.policy, np.random.default_rng(1))
        large.update(path, loss)
        small.update(path, loss / 1000.0 + 0.3)
        assert_allclose(large.policy, small.policy, atol=1e-6)


def test_the_best_expert_is_found_where_a_simple_rule_fails() -> None:
    """What it pays is near the best of two simple rules, each of which fails somewhere."""
    mdp = am.MDP.random([1, 4, 4, 1], 3, seed=0)
    sk, T = mdp.skeleton, 600
    rng = np.random.default_rng(0)
    pair = rng.random((2, sk.num_pairs))
    worlds = {
        "persists": am.losses.Switching(sk, period=100, seed=1),
        "noise": am.losses.Stochastic(sk, seed=1),
        "alternates": am.losses.FromFunction(sk, lambda t: sk.over_transitions(pair[t % 2])),
    }
    for losses in worlds.values():
        paid = {
            kind.__name__: am.play(mdp, losses, kind(sk), T, seed=1).total_loss
            for kind in (SelfTuning, am.ReplayLast, am.FollowLeader, am.Uniform)
        }
        best = min(paid["ReplayLast"], paid["FollowLeader"])
        assert paid["SelfTuning"] <= best + 0.03 * (paid["Uniform"] - best)
    assert paid["SelfTuning"] < 0.9 * best  # alternation: nobody else sees it


def test_a_good_hint_pays_and_a_useless_one_costs_next_to_nothing() -> None:
    rng = np.random.default_rng(3)
    truth = rng.random((300, SK.num_pairs))

    def paid(forecast) -> float:
        learner, total = SelfTuning(SK), 0.0
        draws = np.random.default_rng(5)
        for t in range(300):
            loss = SK.over_transitions(truth[t])
            if forecast is not None:
                learner.hint(SK.over_transitions(forecast(t)))
            total += am.occupancy(MDP, learner.policy) @ loss
            learner.update(MDP.sample(learner.policy, draws), loss)
        return total

    without, good = paid(None), paid(lambda t: truth[t])
    useless = paid(lambda t: rng.random(SK.num_pairs))
    uniform = 300 * am.occupancy(MDP, am.uniform_policy(SK)) @ SK.over_transitions(truth.mean(axis=0))
    foresight = sum(am.best_response(MDP, SK.over_transitions(one))[1] for one in truth)
    assert good <= foresight + 0.1 * (uniform - foresight)
    assert useless <= without + 0.02 * (uniform - foresight)


def test_a_hint_counts_in_one_episode_only() -> None:
    rng = np.random.default_rng(0)
    one, other = SelfTuning(SK), SelfTuning(SK)
    for t in range(20):
        loss, path = rng.random(SK.num_transitions), MDP.sample(am.uniform_policy(SK), rng)
        if t == 10:
            one.hint(rng.random(SK.num_transitions))
            assert one.weights[-1] > 0
        one.update(path, loss)
        other.update(path, loss)
        assert one.weights[-1] == 0
    assert not np.array_equal(one.believed, other.believed)


def test_a_custom_rule_joins_the_pool() -> None:
    """A timetable that knows the rhythm of the losses, which no other expert can know."""
    rng = np.random.default_rng(0)
    losses = rng.random((400, SK.num_pairs))  # noise: nothing can be learned but from the timetable
    timetable = [am.best_response(MDP, SK.over_transitions(loss))[0] for loss in losses]
    learner, paid, best = SelfTuning(SK, rules={"timetable": timetable[0]}), 0.0, 0.0
    uniform = 0.0
    for t, loss in enumerate(losses):
        learner.set_rule("timetable", timetable[t])
        over = SK.over_transitions(loss)
        paid += am.occupancy(MDP, learner.policy) @ over
        best += am.occupancy(MDP, timetable[t]) @ over
        uniform += am.occupancy(MDP, am.uniform_policy(SK)) @ over
        learner.update(MDP.sample(learner.policy, rng), over)
    assert paid <= best + 0.05 * (uniform - best)
    assert learner.weights[learner.experts.index("rule timetable")] > 0.9


def test_the_bound_is_that_of_the_theorem_and_of_adahedge() -> None:
    T, K = 1000, len(SelfTuning(SK).experts)
    learner = SelfTuning(SK, horizon=T, guarantee=True, delta=0.1)
    mixing = SK.num_steps * (np.sqrt(T * np.log(K)) + 2.0)
    assert learner.bound(T) == pytest.approx(am.bounds.total(SK, T, 0.1) + mixing)
    written = am.FunctionCriterion(  # its subgradients may have either sign
        value=lambda q, loss: -float(q @ loss), subgradient=lambda q, loss: -loss, lipschitz=1.0
    )
    signed = SelfTuning(SK, horizon=T, guarantee=True, delta=0.1, criterion=written)
    assert signed.bound(T) == pytest.approx(am.bounds.total(SK, T, 0.1) + 2.0 * mixing)
    assert SelfTuning(SK, horizon=T).bound(T) == inf
    assert SelfTuning(SK, guarantee=True).bound(T) == inf
    assert learner.bound(T - 1) == inf
    others = [name for name in learner.experts if name != FIRST]
    assert SelfTuning(SK, horizon=T, guarantee=True, experts=others).bound(T) == inf


@pytest.mark.xdist_group("threads")
@pytest.mark.parametrize(
    "options", [{}, {"guarantee": True, "horizon": 60}, {"rules": {"mine": am.uniform_policy(SK)}}]
)
def test_threads_change_nothing(options: dict) -> None:
    losses = am.losses.Drifting(SK, seed=1)
    one, *others = (SelfTuning(SK, threads=count, **options) for count in (1, 2, 3))
    games = [am.play(MDP, losses, learner, 60, seed=2) for learner in (one, *others)]
    for learner, game in zip(others, games[1:], strict=True):
        assert game.curve.equals(games[0].curve)
        for name, array in one.state().items():
            assert array.tobytes() == learner.state()[name].tobytes(), name


@pytest.mark.slow
@pytest.mark.xdist_group("threads")
def test_two_threads_share_the_work() -> None:
    """The thread that asks does all of it alone, and clearly less with a second thread. Busy cores change no share."""
    mdp = am.MDP.random([1, 20, 20, 20, 20, 1], actions=5, seed=0)
    losses, shares = am.losses.Stochastic(mdp.skeleton, noise=0.5), []
    for count in (1, 2):
        learner = SelfTuning(mdp.skeleton, threads=count)
        own, whole = time.thread_time(), time.process_time()
        am.play(mdp, losses, learner, 40)
        shares.append((time.thread_time() - own) / (time.process_time() - whole))
    assert shares[0] > 0.95
    assert shares[1] < 0.85


def test_only_large_worlds_use_threads_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 4)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    large, small = am.Skeleton.dense([1, 400, 1000, 1], 1), am.Skeleton.dense([1, 399, 997, 1], 1)
    assert small.num_transitions < self_tuning.LARGE <= large.num_transitions
    assert [threads_for(sk, 14) for sk in (large, small)] == [4, 1]
    assert threads_for(large, 3) == 3
    for limit, expected in (("1", 1), ("3,2", 3), ("100", 4), ("many", 4), ("0", 4)):
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
        assert threads_for(large, 14) == expected
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(threads, "_left_behind", True)
    assert threads_for(large, 14) == 1


@pytest.mark.xdist_group("threads")
def test_a_file_does_not_depend_on_the_threads_of_the_machine(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses, files = am.losses.Drifting(SK, seed=1), []
    monkeypatch.setattr(self_tuning, "LARGE", SK.num_transitions)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for cores in (1, 3):
        monkeypatch.setattr(threads, "cores", lambda cores=cores: cores)
        learner = SelfTuning(SK)
        assert learner._crew == cores
        assert "threads" not in repr(learner)
        assert learner.get_params()["threads"] is None
        am.play(MDP, losses, learner, 30, seed=2)
        learner.save(tmp_path / f"{cores}.npz")
        files.append((tmp_path / f"{cores}.npz").read_bytes())
    assert files[0] == files[1]
    assert am.load_learner(tmp_path / "1.npz")._crew == am.clone(learner)._crew == 3


def test_hints_and_rules_are_kept_by_a_file(tmp_path) -> None:
    rng = np.random.default_rng(0)
    policy = am.uniform_policy(SK)
    learner = SelfTuning(SK, rules={"mine": policy})
    for _ in range(10):
        learner.update(MDP.sample(learner.policy, rng), rng.random(SK.num_transitions))
    learner.hint(rng.random(SK.num_transitions))
    learner.save(tmp_path / "learner.npz")
    again = am.load_learner(tmp_path / "learner.npz")
    path, loss = MDP.sample(learner.policy, rng), rng.random(SK.num_transitions)
    for one in (learner, again):
        one.update(path, loss)
    assert learner.q.tobytes() == again.q.tobytes()
    assert again.experts == learner.experts


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"periods": (1,)}, "periods"),
        ({"periods": "7"}, "periods"),
        ({"periods": (7, 7)}, "each period once"),
        ({"guarantee": 1}, "True or False"),
        ({"guarantee": True, "kinds": [0]}, "kinds"),
        ({"experts": ["nobody"]}, "some of UC-O-REPS"),
        ({"experts": ["hint"]}, "another expert"),
        ({"experts": 7}, "a list of some of UC-O-REPS"),
        ({"experts": "hint"}, "a list of some of UC-O-REPS"),
        ({"rules": ["mine"]}, "^rules: .*expected a dictionary"),
        ({"rules": 7}, "a dictionary of policies by name"),
        ({"discount": np.full(3, 0.9)}, "discount"),
        ({"rules": {"mine": [1.0]}}, "policy"),
        ({"delta": 0.0}, "delta"),
        ({"horizon": 0}, "horizon"),
    ],
)
def test_invalid_parameters_are_refused(options: dict, says: str) -> None:
    with pytest.raises(am.InputError, match=says):
        SelfTuning(SK, **options)


def test_invalid_hints_and_rules_are_refused() -> None:
    learner = SelfTuning(SK)
    with pytest.raises(am.InputError, match="loss"):
        learner.hint(np.full(SK.num_transitions, 2.0))
    with pytest.raises(am.InputError, match="rule"):
        learner.set_rule("nobody's", am.uniform_policy(SK))
    with pytest.raises(am.InputError, match="rule"):
        learner.set_rule(["mine"], am.uniform_policy(SK))
    with pytest.raises(am.InputError, match="hint"):
        SelfTuning(SK, experts=[FIRST]).hint(np.zeros(SK.num_transitions))


POOLS = [["last of 2 x100"], ["mean of 2 x100", "hint"], ["found x100", "rule mine"], ["last x10"], [FIRST, "hint"]]


@pytest.mark.parametrize("experts", POOLS, ids=repr)
def test_every_pool_is_kept_by_a_file(experts: list[str], tmp_path) -> None:
    learner = SelfTuning(SK, rules={"mine": am.uniform_policy(SK)}, experts=experts)
    losses = am.losses.Drifting(SK, seed=1)
    am.play(MDP, losses, learner, 20, seed=2)
    learner.save(tmp_path / "learner.npz")
    again = am.load_learner(tmp_path / "learner.npz")
    for one in (learner, again):
        am.play(MDP, losses, one, 20, seed=3)
    assert learner.q.tobytes() == again.q.tobytes()


def test_losses_of_large_units_are_kept_by_a_file(tmp_path) -> None:
    """Risk has subgradients of up to c L^(c-1), here 6e21, whose squares are summed."""
    mdp = am.MDP.random([1, *[3] * 11, 1], 2, seed=3)
    learner = SelfTuning(mdp.skeleton, criterion=am.Risk(0.5, 20.0))
    am.play(mdp, am.losses.Switching(mdp.skeleton, period=7, seed=1), learner, 20, seed=1, comparator_at="end")
    learner.save(tmp_path / "learner.npz")
    assert am.load_learner(tmp_path / "learner.npz").q.tobytes() == learner.q.tobytes()


def test_the_last_loss_of_a_phase_is_known_without_the_mean() -> None:
    """Losses that alternate repeat to the bit, so their mean at a phase is the last one, and so are both answers."""
    rows = np.random.default_rng(5).random((2, SK.num_transitions))
    losses = am.losses.Replay(SK, np.tile(rows, (20, 1)))
    last, mean = (SelfTuning(SK, periods=(2,), experts=[f"{what} of 2 x100"]) for what in ("last", "mean"))
    for learner in (last, mean):
        am.play(MDP, losses, learner, 40, seed=2)
    assert_allclose(last.q, mean.q, atol=1e-9)
    assert_allclose(last._memory.ago, [reduced(row) for row in rows])


def spoiled(name: str, change) -> dict:
    learner = SelfTuning(SK)
    am.play(MDP, am.losses.Drifting(SK, seed=1), learner, 20, seed=2)
    state = learner.state()
    state[name] = change(state[name])
    return state


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("awake", np.zeros_like),
        ("awake", lambda awake: np.append(0, awake[1:])),
        ("weights", lambda weights: weights[::-1].copy()),
        ("weights", lambda weights: np.full(len(weights), 1.0 / len(weights))),
        ("believed", lambda believed: believed + np.arange(len(believed))),
        ("q", lambda q: am.occupancy(MDP, am.uniform_policy(SK))),
    ],
)
def test_an_impossible_state_is_refused(name: str, change) -> None:
    learner = SelfTuning(SK)
    with pytest.raises(am.InputError, match="state of SelfTuning"):
        learner.restore(spoiled(name, change))


def test_the_rule_is_compiled() -> None:
    assert isinstance(SelfTuning(SK)._rule, Mixture)
    assert SelfTuning(SK).compiled


@pytest.mark.parametrize("rules", [5, "x", [SK]])
def test_rules_that_are_no_dictionary_are_named(rules: object) -> None:
    with pytest.raises(am.InputError, match="rules: .*; expected a dictionary of policies by name"):
        am.SelfTuning(SK, rules=rules)  # type: ignore[arg-type]
