"""Playing: accounts are exact, blocks and loops agree to the bit, and killed games resume exactly."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from numpy.testing import assert_allclose

import advmdp as am
from advmdp.core.streams import stream_key, uniforms
from advmdp.game import match
from advmdp.game.ledger import marks
from tests.helpers.damage import forge
from tests.helpers.forks import run_with_children
from tests.helpers.oracles import policies
from tests.helpers.strategies import build_mdp

MDP = build_mdp([1, 2, 3, 1], np.random.default_rng(1), 3, zeros=True)
SK = MDP.skeleton
SWITCHING = am.losses.Switching(SK, period=7, seed=3)
ADAPTIVE = am.losses.Adaptive(SK, seed=3, memory=3)


class InPython(am.UCOREPS):
    """The same learner, one episode at a time."""

    @property
    def compiled(self) -> bool:
        return False


class FollowerInPython(am.FollowLeader):
    @property
    def compiled(self) -> bool:
        return False


def learner(kind: type = am.UCOREPS, **options) -> am.UCOREPS:
    return kind(SK, **{"horizon": 300, "eta": 0.2, "confidence_scale": 0.2, **options})


def same(a: am.Game, b: am.Game) -> None:
    assert a.curve.equals(b.curve)
    assert a.learner.episode == b.learner.episode
    assert a.comparator.policy.tobytes() == b.comparator.policy.tobytes()
    states = a.learner.state(), b.learner.state()
    assert states[0].keys() == states[1].keys()
    for name in states[0]:
        assert states[0][name].tobytes() == states[1][name].tobytes(), name


@pytest.mark.parametrize("losses", [SWITCHING, ADAPTIVE], ids=["switching", "adaptive"])
def test_the_account_is_exact(losses: am.losses.Losses) -> None:
    """Worked out again, episode by episode, with policies enumerated for the comparator."""
    game = am.play(MDP, losses, learner(), 60, seed=5)
    again = learner()
    paid = believed = 0.0
    total, played, expected = np.zeros(SK.num_transitions), [], {}
    drawn = uniforms(stream_key(5, "world", "trajectories"), 0, 60, 2 * SK.num_layers)
    for t in range(60):
        loss = losses.at(t, played)
        paid += am.occupancy(MDP, again.policy) @ loss
        believed += again.q @ loss
        played.append(np.array(again.policy))
        total += loss
        best = min(am.occupancy(MDP, pi) @ total for pi in policies(SK))
        expected[t + 1] = (paid, best, paid - best, paid - believed, believed - best, again.epochs)
        again.update(MDP.sample(again.policy, Fixed(drawn[t])), loss)
        expected[t + 1] = (*expected[t + 1][:5], again.epochs)
    columns = ["loss", "comparator", "regret", "regret_approximation", "regret_online", "epochs"]
    for row in game.curve.iter_rows(named=True):
        assert_allclose([row[name] for name in columns], expected[row["episode"]], rtol=1e-10, atol=1e-10)
    assert game.total_loss == pytest.approx(paid)
    assert game.regret == pytest.approx(paid - best)
    assert am.occupancy(MDP, game.comparator.policy) @ total == pytest.approx(best)
    assert game.comparator.gap == 0.0
    assert game.curve["projection_gap"].max() <= 1e-9


class Fixed(np.random.Generator):
    """A generator whose next numbers are known."""

    def __init__(self, numbers: np.ndarray) -> None:
        super().__init__(np.random.Philox(0))
        self.numbers = numbers

    def random(self, size: int) -> np.ndarray:
        assert size == len(self.numbers)
        return self.numbers


@pytest.mark.parametrize("criterion", [am.TotalLoss(), am.Risk(0.5, 2.0), am.WorstCase()])
@pytest.mark.parametrize("options", [{}, {"confidence": "bernstein", "share": 0.01, "horizon": None, "eta": "theory"}])
def test_compiled_blocks_and_a_loop_in_python_agree_to_the_bit(criterion: am.Criterion, options: dict) -> None:
    losses = am.losses.Switching(SK, period=7, seed=3, dimensions=2) if criterion == am.WorstCase() else SWITCHING
    games = [
        am.play(MDP, losses, learner(kind, criterion=criterion, **options), 150) for kind in (am.UCOREPS, InPython)
    ]
    same(*games)


class AnswersInPython(am.losses.Adaptive):
    """The same adversary, asked one episode at a time."""

    reaction = am.losses.Losses.reaction


@pytest.mark.parametrize("options", [{}, {"memory": 4, "noise": 0.0, "strength": 0.9}, {"memory": 2, "dimensions": 2}])
def test_an_adaptive_adversary_answers_alike_in_compiled_code_and_in_python(options: dict) -> None:
    criterion = am.WorstCase() if "dimensions" in options else am.TotalLoss()
    kinds = am.losses.Adaptive, AnswersInPython
    same(*(am.play(MDP, kind(SK, seed=1, **options), learner(criterion=criterion), 150) for kind in kinds))


def test_baselines_agree_in_compiled_blocks_and_in_python() -> None:
    same(*(am.play(MDP, SWITCHING, kind(SK), 150) for kind in (am.FollowLeader, FollowerInPython)))


@pytest.mark.parametrize("entries", [1, 40, 1000])
def test_the_split_into_blocks_does_not_matter(monkeypatch: pytest.MonkeyPatch, entries: int) -> None:
    whole = am.play(MDP, SWITCHING, learner(), 150)
    monkeypatch.setattr(match, "ENTRIES", entries)
    same(whole, am.play(MDP, SWITCHING, learner(), 150))


def test_the_same_seed_gives_the_same_game_and_another_seed_another() -> None:
    first, again, other = (am.play(MDP, SWITCHING, learner(), 100, seed=seed) for seed in (4, 4, 5))
    same(first, again)
    assert first.total_loss != other.total_loss


@pytest.mark.parametrize("losses", [SWITCHING, ADAPTIVE], ids=["switching", "adaptive"])
@pytest.mark.parametrize("criterion", [am.TotalLoss(), am.Risk(0.5, 2.0)])
def test_a_resumed_and_extended_game_equals_an_uninterrupted_one(
    tmp_path: Path, criterion: am.Criterion, losses: am.losses.Losses
) -> None:
    straight = am.play(MDP, losses, learner(criterion=criterion), 120)
    path = tmp_path / "game.npz"
    for episodes in (1, 37, 37, 100, 120):
        last = am.play(MDP, losses, learner(criterion=criterion), episodes, checkpoint=path)
    same(straight, last)


def test_a_checkpoint_of_another_game_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "game.npz"
    am.play(MDP, SWITCHING, learner(), 20, checkpoint=path)
    others = {
        "seed": lambda: am.play(MDP, SWITCHING, learner(), 40, seed=1, checkpoint=path),
        "losses": lambda: am.play(MDP, am.losses.Switching(SK, period=7, seed=4), learner(), 40, checkpoint=path),
        "learner": lambda: am.play(MDP, SWITCHING, learner(eta=0.3), 40, checkpoint=path),
        "world": lambda: am.play(am.MDP(SK, am.transition_of(SK, np.ones(SK.num_transitions))), SWITCHING, learner(),
                                 40, checkpoint=path),
    }  # fmt: skip
    for name, other in others.items():
        with pytest.raises(am.InputError, match=f"another game, which differs in {name};"):
            other()
    with pytest.raises(am.InputError, match="20 or more"):
        am.play(MDP, SWITCHING, learner(), 10, checkpoint=path)


SCRIPT = """
    import sys
    import advmdp as am
    from advmdp.game import match
    match.ENTRIES = 4000
    mdp = am.MDP.random([1, 3, 3, 1], 3, seed=0)
    losses = am.losses.Switching(mdp.skeleton, period=50, seed=1)
    learner = am.UCOREPS(mdp.skeleton, horizon=40_000, confidence_scale=0.3)
    print("ready", flush=True)
    game = am.play(mdp, losses, learner, 40_000, checkpoint=sys.argv[1], checkpoint_seconds=0.0)
    game.curve.write_parquet(sys.argv[2])
"""


def start(tmp_path: Path, checkpoint: Path, out: Path) -> subprocess.Popen:
    script = tmp_path / "play.py"
    script.write_text(textwrap.dedent(SCRIPT))
    arguments = [sys.executable, script, checkpoint, out]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(tmp_path: Path, checkpoint: Path, out: Path) -> None:
    process = start(tmp_path, checkpoint, out)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    finish(tmp_path, tmp_path / "undisturbed.npz", tmp_path / "a.parquet")
    rng, killed = np.random.default_rng(), 0
    for _ in range(5):
        process = start(tmp_path, tmp_path / "killed.npz", tmp_path / "b.parquet")
        process.stdout.readline()
        time.sleep(rng.uniform(0.0, 0.4))
        killed += process.poll() is None
        process.kill()
        process.communicate()
    assert killed >= 2
    finish(tmp_path, tmp_path / "killed.npz", tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert (tmp_path / "undisturbed.npz").read_bytes() == (tmp_path / "killed.npz").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT; to run it: use Linux or macOS")
def test_ctrl_c_leaves_a_checkpoint_and_says_how_to_resume(tmp_path: Path) -> None:
    path, out = tmp_path / "game.npz", tmp_path / "a.parquet"
    process = start(tmp_path, path, out)
    process.stdout.readline()
    while not path.exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "to continue, repeat the call" in err
    assert str(path) in err
    finish(tmp_path, path, out)
    assert pl.read_parquet(out)["episode"][-1] == 40_000


def test_mismatched_arguments_are_refused() -> None:
    other = am.MDP.random([1, 2, 1], 2, seed=0)
    with pytest.raises(am.InputError, match="losses: made for another skeleton"):
        am.play(MDP, am.losses.Stochastic(other.skeleton), learner(), 10)
    with pytest.raises(am.InputError, match="learner: made for another skeleton"):
        am.play(MDP, SWITCHING, am.Uniform(other.skeleton), 10)
    with pytest.raises(am.InputError, match=r"mdp: a Skeleton; expected an MDP: a skeleton with its probabilities"):
        am.play(SK, SWITCHING, learner(), 10)
    with pytest.raises(am.InputError, match=r"^episodes: '10'; expected a whole number, 1 or more$"):
        am.play(MDP, SWITCHING, learner(), "10")
    with pytest.raises(am.InputError, match=r"1 or more, at most 9,007,199,254,740,992$"):
        am.play(MDP, SWITCHING, learner(), 10**17)
    with pytest.raises(am.InputError, match="at most 5"):
        am.play(MDP, am.losses.Replay(SK, np.zeros((5, SK.num_pairs))), learner(), 6)
    with pytest.raises(am.InputError, match="episodes"):
        am.play(MDP, SWITCHING, learner(), 0)
    for wrong in ({"mdp": SK}, {"losses": np.zeros(3)}, {"learner": am.UCOREPS}):
        given = {"mdp": MDP, "losses": SWITCHING, "learner": learner(), **wrong}
        with pytest.raises(am.InputError, match=next(iter(wrong))):
            am.play(**given, episodes=3)
    with pytest.raises(am.InputError, match="TotalLoss"):
        am.FollowLeader(SK, criterion=am.WorstCase())


class Odd(am.losses.Losses):
    """Somebody's own losses, with one that is none."""

    def __init__(self, value: float) -> None:
        super().__init__(SK)
        self.value = value

    def _block(self, first: int, stop: int, policies: object) -> np.ndarray:
        losses = np.full((stop - first, SK.num_transitions), 0.5)
        if first <= 11 < stop:
            losses[11 - first, 2] = self.value
        return losses


@pytest.mark.parametrize("kind", [am.UCOREPS, InPython])
@pytest.mark.parametrize("value", [np.nan, np.inf, -0.1, 1.5])
def test_invalid_losses_are_named_by_episode_and_place(kind: type, value: float) -> None:
    with pytest.raises(am.InputError, match=r"loss of episode 11 at layer 0, state 0.*; expected a number from 0 to 1"):
        am.play(MDP, Odd(value), learner(kind), 30)


def test_a_criterion_that_cannot_take_such_losses_is_refused_before_anything_is_played() -> None:
    several = am.losses.Switching(SK, period=7, seed=3, dimensions=2)
    for criterion in (am.TotalLoss(), am.Risk(0.5, 2.0)):
        player = learner(criterion=criterion)
        with pytest.raises(am.InputError, match="2 losses at once"):
            am.play(MDP, several, player, 10)
        with pytest.raises(am.InputError, match="2 losses at once"):
            player.update(MDP.sample(player.policy, np.random.default_rng(0)), several.at(0))
        assert player.episode == 0
        assert player.counts.new_visits.sum() == 0


def test_the_comparator_may_be_asked_for_at_the_end_only() -> None:
    games = [
        am.play(MDP, SWITCHING, learner(criterion=am.Risk(0.5, 1.5)), 80, comparator_at=at) for at in ("marks", "end")
    ]
    assert games[1].regret == pytest.approx(games[0].regret, rel=1e-3)
    assert games[1].curve["regret"].null_count() == len(games[1].curve) - 1
    with pytest.raises(am.InputError, match="comparator_at"):
        am.play(MDP, SWITCHING, learner(), 80, comparator_at="noon")


def test_the_account_may_use_another_criterion() -> None:
    """The two parts of the regret are parts of the regret that is accounted for, in compiled code as in Python."""
    games = [am.play(MDP, SWITCHING, learner(kind), 90, criterion=am.Risk(0.5, 2.0)) for kind in (am.UCOREPS, InPython)]
    same(*games)
    parts = games[0].curve["regret_approximation"] + games[0].curve["regret_online"]
    assert_allclose(parts, games[0].curve["regret"], atol=1e-9)
    assert games[0].curve["bound"].is_infinite().all()
    with pytest.raises(am.InputError, match="criterion"):
        am.play(MDP, SWITCHING, learner(), 90, criterion="total")


@pytest.mark.parametrize("at", [53, 90])
def test_a_game_stopped_anywhere_has_ended_or_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Interrupted between marks: the same call goes on, also with the learner that was interrupted, or ends there."""
    path, player = tmp_path / "game.npz", learner()
    real = match.Match._block

    def interrupted(match: object, first: int, stop: int) -> None:
        real(match, first, stop)
        if stop == at:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(match, "LONGEST", 1)
    monkeypatch.setattr(match.Match, "_block", interrupted)
    with pytest.raises(KeyboardInterrupt, match=f"stopped after {at} of 300"):
        am.play(MDP, SWITCHING, player, 300, checkpoint=path)
    monkeypatch.setattr(match.Match, "_block", real)
    here = am.play(MDP, SWITCHING, learner(), at, checkpoint=path)
    assert here.curve.equals(am.play(MDP, SWITCHING, learner(), at).curve)
    same(am.play(MDP, SWITCHING, learner(), 120), am.play(MDP, SWITCHING, player, 120, checkpoint=path))


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("total", np.zeros((3, 1))),
        ("state/policy", np.zeros(SK.num_pairs)),
        ("state/policy", np.full(SK.num_pairs, np.nan)),
        ("state/visits", np.full(SK.num_pairs, -1)),
        ("state/seen", np.zeros(SK.num_transitions)),
        ("state/log_q", np.zeros(2)),
    ],
)
def test_a_checkpoint_with_odd_arrays_is_refused_before_a_kernel_sees_them(
    tmp_path: Path, name: str, array: np.ndarray
) -> None:
    path = tmp_path / "game.npz"
    am.play(MDP, SWITCHING, learner(), 20, checkpoint=path)
    forge(path, lambda about, arrays: arrays.update({name: array}))
    with pytest.raises(am.CheckpointError, match=f"game.npz, .*{name.removeprefix('state/')}"):
        am.play(MDP, SWITCHING, learner(), 40, checkpoint=path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda about: about["ledger"]["lines"][3].update(loss=""), "ledger, the line of episode 4, loss: ''"),
        (lambda about: about["ledger"]["lines"][3].update(loss=10**400), "line of episode 4, loss: 1000"),
        (lambda about: about["ledger"]["lines"][3].update(epochs=1e308), "line of episode 4, epochs: 1e.308"),
        (lambda about: about["ledger"]["lines"][3].update(more=1.0), "the line of episode 4: .*more"),
        (lambda about: about["ledger"]["lines"][3].pop("comparator"), "the line of episode 4: .*comparator"),
        (
            lambda about: about["ledger"]["lines"].reverse(),
            "line of episode 18: 18; expected a whole number, 21 or",
        ),
        (lambda about: about["ledger"].update(paid=float("nan")), "ledger, paid: nan"),
        (lambda about: about["ledger"].update(episodes=10**400), "episodes: 1000"),
        (lambda about: about["ledger"].update(episodes=3), "total: sums of losses out of range; expected from 0 to 3"),
        (lambda about: about["ledger"].pop("gap"), "invalid or incomplete game .KeyError: 'gap'"),
        (lambda about: about.update(ledger=[]), "invalid or incomplete game"),
        (lambda about: about.update(started=-1), "started: -1"),
        (lambda about: about.update(policies=[7]), "policies: 0 policies"),
    ],
)
def test_a_checkpoint_with_an_odd_ledger_is_refused(tmp_path: Path, change, message: str) -> None:
    path = tmp_path / "game.npz"
    am.play(MDP, SWITCHING, learner(), 20, checkpoint=path)
    forge(path, lambda about, arrays: change(about))
    with pytest.raises(am.CheckpointError, match=message):
        am.play(MDP, SWITCHING, learner(), 40, checkpoint=path)


@pytest.mark.parametrize("episodes", [0, 1.0, "9", 2**53 + 1, 10**30])
def test_too_many_episodes_are_refused(episodes: object) -> None:
    with pytest.raises(am.InputError, match="^episodes: "):
        am.play(MDP, SWITCHING, learner(), episodes)
    for best in (
        lambda: am.comparator(MDP, SWITCHING, am.TotalLoss(), episodes),
        lambda: am.switching_comparator(MDP, SWITCHING, episodes, 2),
    ):
        with pytest.raises(am.InputError, match="^episodes: "):
            best()


def test_marks_are_twenty_to_a_decade_and_end_with_the_last() -> None:
    assert marks(5).tolist() == [1, 2, 3, 4, 5]
    long = marks(10**6)
    assert long[-1] == 10**6
    assert np.count_nonzero((long > 10**4) & (long <= 10**5)) == 20
    assert set(marks(12_345)) - {12_345} <= set(long)


def test_memory_does_not_grow_with_the_number_of_episodes() -> None:
    import tracemalloc

    def peak(episodes: int) -> int:
        tracemalloc.start()
        am.play(MDP, am.losses.Switching(SK, period=3, seed=0), am.FollowLeader(SK), episodes)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(100)
    assert peak(1_000_000) < 1.1 * peak(200_000)


@pytest.mark.parametrize("scale", [0.05, 1.0])
def test_the_curve_has_the_mean_radius_of_section_4_1(scale: float) -> None:
    T, delta, mdp = 400, 0.1, am.MDP.random([1, 3, 4, 1], 2, seed=2)
    learner = am.UCOREPS(mdp.skeleton, horizon=T, delta=delta, confidence_scale=scale)
    game = am.play(mdp, am.losses.Stochastic(mdp.skeleton), learner, T)
    N, over = learner.counts.visits, np.repeat([3, 4, 1], [2, 6, 8])
    radius = scale * np.sqrt(2 * over * np.log(T * 9 * 2 / delta) / np.maximum(1, N))
    expected = np.where(N > 0, np.minimum(2, radius), 2).mean()
    assert game.curve["radius"][-1] == pytest.approx(expected, rel=1e-12)
    assert game.curve["radius"].is_sorted(descending=True)
    assert (
        am.play(mdp, am.losses.Stochastic(mdp.skeleton), am.Uniform(mdp.skeleton), 5).curve["radius"].null_count() == 5
    )


FORKED = """
import os
import polars as pl
import advmdp as am
from advmdp.integrations.gymnasium import AdversarialEnv

mdp = am.MDP.random([1, 2, 2, 1], 2, seed=0)
sk = mdp.skeleton
losses = am.losses.Switching(sk, period=3)

def account():
    env = AdversarialEnv(mdp, losses)
    env.reset()
    for _ in range(sk.num_layers):
        env.step(0)
    return env.account().curve

def curves():
    criteria = None, am.Risk(0.5, 1.5)
    played = [am.play(mdp, losses, am.UCOREPS(sk, 30, criterion=c), 30).curve for c in criteria]
    return [frame.to_dict(as_series=False) for frame in (*played, account())]

pl.DataFrame({"a": [1, 2]}).select(b=pl.col("a") + 1, c=pl.col("a") * 2)  # Polars has its threads now
before = curves()
child = os.fork()
if child == 0:
    os._exit(0 if curves() == before else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.slow
def test_a_forked_process_plays_the_same_game() -> None:
    assert run_with_children(FORKED) == "0"


THREADED = """
import os
import advmdp as am
from advmdp.learners import self_tuning

mdp = am.MDP.random([1, 2, 2, 1], 2, seed=0)
losses = am.losses.Switching(mdp.skeleton, period=3)

def played(threads):
    return am.play(mdp, losses, am.LEARNER(mdp.skeleton, 30, threads=threads), 30).regret

self_tuning.LARGE = 1
unasked = am.SelfTuning(mdp.skeleton, 30)  # has as many threads as there are cores
expected = am.play(mdp, losses, am.SelfTuning(mdp.skeleton, 30), 30).regret

before, made = played(2), am.LEARNER(mdp.skeleton, 30, threads=2)
child = os.fork()
if child == 0:
    good = played(1) == before and am.play(mdp, losses, unasked, 30).regret == expected
    good = good and am.play(mdp, losses, am.SelfTuning(mdp.skeleton, 30), 30).regret == expected
    for play in (lambda: played(2), lambda: am.play(mdp, losses, made, 30).regret):
        try:
            good = good and play() == before  # threads of another kind than OpenMP's outlive a fork
        except am.AdvMDPError as error:
            good = good and "spawn" in str(error)
    os._exit(0 if good else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["UCOREPS", "SelfTuning"])
def test_threads_in_a_forked_process_work_or_are_refused(learner: str) -> None:
    assert run_with_children(THREADED.replace("LEARNER", learner)) == "0"


def test_regret_against_policies_that_switch_is_a_column_on_request() -> None:
    plain = am.play(MDP, SWITCHING, learner(), 150)
    game = am.play(MDP, SWITCHING, learner(), 150, switches=(21, 3, 21))
    assert game.curve.columns[-2:] == ["regret_switches_21", "regret_switches_3"]
    assert game.curve[:, :-2].equals(plain.curve)
    for most in (3, 21):
        for t, loss, regret in game.curve.select("episode", "loss", f"regret_switches_{most}").iter_rows():
            found = am.switching_comparator(MDP, SWITCHING, t, most)
            assert regret == pytest.approx(loss - found.value, rel=1e-12)
    assert am.play(MDP, SWITCHING, learner(), 150, switches=3).curve.columns[-1] == "regret_switches_3"


def test_switches_are_counted_alike_after_a_checkpoint(tmp_path: Path) -> None:
    whole = am.play(MDP, SWITCHING, learner(), 150, switches=[2])
    am.play(MDP, SWITCHING, learner(), 70, checkpoint=tmp_path / "game.npz")
    same(am.play(MDP, SWITCHING, learner(), 150, checkpoint=tmp_path / "game.npz", switches=[2]), whole)
    same(am.play(MDP, SWITCHING, learner(), 150, checkpoint=tmp_path / "game.npz", switches=[2]), whole)


@pytest.mark.parametrize(
    ("options", "losses", "said"),
    [
        ({}, ADAPTIVE, "losses: .*reacts"),
        ({"criterion": am.Risk(0.5, 2.0)}, SWITCHING, "switches: .*expected the total loss"),
        ({"switches": 0}, SWITCHING, "switches"),
        ({"switches": "3"}, SWITCHING, "switches"),
        ({"switches": (2, None)}, SWITCHING, "switches"),
        ({"episodes": 10**8}, SWITCHING, "episodes: 100,000,000 for up to 2 switches"),
    ],
)
def test_switches_that_cannot_be_counted_are_refused_before_the_game(
    options: dict, losses: am.losses.Losses, said: str
) -> None:
    player = learner()
    with pytest.raises(am.InputError, match=said):
        am.play(MDP, losses, player, **{"episodes": 50, "switches": 2, **options})
    assert player.episode == 0


def test_the_repr_shows_cost_first_and_regret_with_its_comparator() -> None:
    mdp = am.MDP.random([1, 2, 1], 2, seed=0)
    sk = mdp.skeleton
    for losses, said in (
        (am.losses.Stochastic(sk), "these losses"),
        (am.losses.Adaptive(sk), "the losses that it provoked"),
    ):
        game = am.play(mdp, losses, am.Uniform(sk), episodes=20)
        best = f"the best fixed policy on {said}, {game.comparator.value:,.2f}"
        numbers = f"paid {game.total_loss:,.2f}; regret {game.regret:+,.2f} against {best}"
        assert repr(game) == f"Game(Uniform, 20 episodes: {numbers})"
        assert game.reacts == (said != "these losses")


class Marking(am.Uniform):
    """Marks how many episodes it has seen."""

    name = "seen"

    def marked(self) -> dict[str, float]:
        return {self.name: self.episode}


def test_what_a_learner_marks_is_a_column_of_the_curve(tmp_path: Path) -> None:
    mdp = am.MDP.random([1, 2, 1], 2, seed=0)
    sk, file = mdp.skeleton, tmp_path / "game.npz"
    losses = am.losses.Stochastic(sk)
    assert "seen" not in am.play(mdp, losses, am.Uniform(sk), 30).curve.columns
    whole = am.play(mdp, losses, Marking(sk), 30).curve
    assert whole["seen"].to_list() == [float(t) for t in whole["episode"]]
    am.play(mdp, losses, Marking(sk), 11, checkpoint=file)
    assert am.play(mdp, losses, Marking(sk), 30, checkpoint=file).curve.equals(whole)


@pytest.mark.parametrize("name", ["loss", "regret", "episode", "comparator_gap"])
def test_a_learner_may_not_mark_what_the_curve_has_already(name: str) -> None:
    mdp = am.MDP.random([1, 2, 1], 2, seed=0)
    learner = Marking(mdp.skeleton)
    learner.name = name
    with pytest.raises(am.InputError, match=f"marked.*{name}"):
        am.play(mdp, am.losses.Stochastic(mdp.skeleton), learner, 5)


def test_the_weights_of_self_tuning_are_in_its_curve(tmp_path: Path) -> None:
    mdp = am.MDP.random([1, 3, 3, 1], 2, seed=0)
    sk, file = mdp.skeleton, tmp_path / "game.npz"
    losses = am.losses.Switching(sk, period=20)
    learner = am.SelfTuning(sk)
    curve = am.play(mdp, losses, learner, 100).curve
    names = [f"weight_{expert}" for expert in learner.experts]
    assert [name for name in curve.columns if name.startswith("weight_")] == names
    np.testing.assert_allclose(curve.select(names).to_numpy().sum(axis=1), 1.0)
    np.testing.assert_array_equal(curve.select(names).row(-1), learner.weights)
    am.play(mdp, losses, am.SelfTuning(sk), 37, checkpoint=file)
    assert am.play(mdp, losses, am.SelfTuning(sk), 100, checkpoint=file).curve.equals(curve)


def test_checkpoints_without_marked_weights_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = am.MDP.random([1, 3, 1], 2, seed=0)
    sk, file = mdp.skeleton, tmp_path / "game.npz"
    losses = am.losses.Stochastic(sk)
    with monkeypatch.context() as older:
        older.setattr(am.SelfTuning, "marked", am.Learner.marked)
        am.play(mdp, losses, am.SelfTuning(sk), 10, checkpoint=file)
    curve = am.play(mdp, losses, am.SelfTuning(sk), 20, checkpoint=file).curve
    weights = curve["weight_UC-O-REPS"]
    assert weights.is_null().to_list() == [t <= 10 for t in curve["episode"]]
    assert curve.drop(cs.starts_with("weight_")).equals(
        am.play(mdp, losses, am.SelfTuning(sk), 20).curve.drop(cs.starts_with("weight_"))
    )
