"""Algorithm 1: a learner against a sequence of losses in a world, and what it cost.

Trajectories are drawn from the stream of the seed that is called "world", 2 L numbers an episode, so any episode can be
drawn again.  Where the learner's step, the criterion and the losses can, blocks of episodes run in compiled code; else
one episode at a time runs in Python.  The results are the same to the bit, as they are for any way of cutting a game
into blocks, and so is a game that was killed and taken up again from its last checkpoint.
"""

import hashlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advmdp.arrays import MOST, FloatArray, check_like, expect, frozen, whole
from advmdp.criteria import Criterion, TotalLoss
from advmdp.errors import CheckpointError, InputError, StorageError
from advmdp.files import path_of, read_archive, write_archive
from advmdp.hindsight import Comparator, Played, comparators, total_comparator
from advmdp.learners.base import Feedback, Learner, fitting
from advmdp.learners.episode import checked_losses, make_block, make_world
from advmdp.losses import Losses, Stochastic
from advmdp.mdp import MDP, Trajectory, sample_path
from advmdp.occupancy_measures import occupancy
from advmdp.policy import checked_policy
from advmdp.regret import LINE, Ledger, curve, marks
from advmdp.streams import stream_key, uniforms

__all__ = ["Game", "play"]

KIND, VERSION = "game", 2
ENTRIES = 2**19
"""A block holds at most so many losses at once: 4 MB."""
LONGEST = 8192
"""And at most so many episodes, so that progress shows and checkpoints are not far apart."""
SECONDS = 20.0
"""Between checkpoints."""
PART = 2**20
"""Bytes of a file of policies that are read at once."""
AGAIN = " (delete it to begin again)"


@dataclass(frozen=True, eq=False)
class Game:
    """What was played, and the account of it."""

    mdp: MDP
    losses: Losses
    learner: Learner
    criterion: Criterion
    episodes: int
    seed: int
    curve: pl.DataFrame
    """A row at each of the :func:`advmdp.regret.marks`: cumulative loss, comparator, regret and its two parts, the
    bound of the learner's guarantee, epochs, the mean radius of the epoch's sets (2: no constraint), and the
    largest gap of a projection so far."""
    comparator: Comparator
    """The best fixed policy in hindsight."""

    @property
    def total_loss(self) -> float:
        """The sum over episodes of the criterion under the true dynamics."""
        return float(self.curve["loss"][-1])

    @property
    def regret(self) -> float:
        return float(self.curve["regret"][-1])

    def __repr__(self) -> str:
        return (
            f"Game({type(self.learner).__name__}, {self.episodes:,} episodes: loss {self.total_loss:,.2f}, "
            f"best fixed policy {self.comparator.value:,.2f}, regret {self.regret:+,.2f})"
        )


def play(
    mdp: MDP,
    losses: Losses,
    learner: Learner,
    episodes: int,
    seed: int = 0,
    *,
    progress: bool | Callable[[float], None] = False,
    criterion: Criterion | None = None,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_seconds: float = SECONDS,
    comparator_gap: float = 1e-4,
    comparator_at: Literal["marks", "end"] = "marks",
    feedback: Feedback | None = None,
    dynamics: Literal["known", "unknown"] | None = None,
) -> Game:
    """Play ``episodes`` episodes and account for them exactly.

    ``criterion`` is what is accounted for: the learner's own unless said.  ``progress`` shows a bar on a terminal; a
    function is called with the number of episodes played, from time to time.

    The learner is shown what it declares to need: the whole loss or that along its path, the dynamics or the skeleton.
    ``feedback`` and ``dynamics`` say what this game grants, and then a learner that needs more is refused.

    With ``checkpoint``, a file, the game is saved every ``checkpoint_seconds`` and when it is interrupted (Ctrl-C), and
    the same call takes it up from there, with the same results as if it had never stopped; a larger ``episodes`` plays
    on.  A file that is damaged, or of another game, is refused (:class:`advmdp.CheckpointError`).  The learner is
    handed over as it was made and is moved on by playing.

    The best fixed policy of any criterion but the total loss must be searched for, to the relative gap
    ``comparator_gap``; with ``comparator_at="end"`` only for the whole game, and regret before that is left empty.
    """
    if comparator_at not in ("marks", "end"):
        raise InputError("comparator_at", f"{comparator_at!r}", "'marks' or 'end'")
    if dynamics not in (None, "known", "unknown"):
        raise InputError("dynamics", f"{dynamics!r}", "'known' or 'unknown'")
    if feedback not in (None, "full", "bandit"):
        raise InputError("feedback", f"{feedback!r}", "'full' or 'bandit'")
    _fit(mdp, losses, learner, feedback, dynamics)
    match = _Match(
        mdp, losses, learner, seed, criterion, None if checkpoint is None else path_of("checkpoint", checkpoint)
    )
    count = whole("episodes", episodes, 1)
    if losses.episodes is not None and count > losses.episodes:
        raise InputError("episodes", f"{count}", f"at most {losses.episodes}, as many as {losses!r} has")
    with closing(match):
        if match.path is not None and match.path.exists():
            match.load()
        with _shown(progress, count) as show:
            match.run(count, show, checkpoint_seconds)
        return match.game(count, comparator_gap, comparator_at == "end", progress)


def _fit(
    mdp: MDP, losses: Losses, learner: Learner, feedback: Feedback | None, dynamics: Literal["known", "unknown"] | None
) -> None:
    """Refuse a learner that this game is not for, and say which ones it is for."""
    expect(MDP, mdp, "mdp")
    expect(Losses, losses, "losses")  # type: ignore[type-abstract]
    expect(Learner, learner, "learner")  # type: ignore[type-abstract]
    name, total = type(learner).__name__, learner.criterion == TotalLoss()
    granted: Literal["skeleton", "dynamics"] = "skeleton" if dynamics == "unknown" else "dynamics"
    optimises: Literal["any", "total"] = "total" if total else "any"
    if feedback == "bandit" and learner.feedback == "full":
        given = f"{name}, which must see the whole loss, in a game that shows the losses along the path"
        raise InputError("learner", given, f"one that sees no more: {fitting('bandit', granted, optimises)}")
    if granted == "skeleton" and learner.mdp is not None:
        others = fitting(feedback or learner.feedback, granted, optimises)
        given = f"{name}, which must know the dynamics, in a game where they are unknown"
        raise InputError("learner", given, f"one that is told the skeleton: {others}")
    if learner.mdp is not None and not np.array_equal(learner.mdp.transition, mdp.transition):
        others = fitting(learner.feedback, "skeleton", optimises)
        given = f"{name}, which was told other dynamics than this world's"
        raise InputError("learner", given, f"one made of this MDP, or one that need not be told: {others}")
    if (losses.dimensions or 1) > 1 and not learner.criterion.takes_several:
        given = f"{losses.dimensions} losses at once for {name} with {learner.criterion!r}, which takes one"
        raise InputError("losses", given, f"one, or WorstCase() and one of {fitting('full', granted, 'any')}")


class _Match:
    """A game in progress."""

    def __init__(
        self,
        mdp: MDP,
        losses: Losses,
        learner: Learner,
        seed: int,
        criterion: Criterion | None,
        path: Path | None,
    ) -> None:
        self.mdp = expect(MDP, mdp, "mdp")
        self.losses = expect(Losses, losses, "losses")  # type: ignore[type-abstract]
        self.learner = expect(Learner, learner, "learner")  # type: ignore[type-abstract]
        chosen = learner.criterion if criterion is None else criterion
        self.criterion = expect(Criterion, chosen, "criterion")  # type: ignore[type-abstract]
        self.seed = whole("seed", seed, 0)
        for name, owner in (("losses", losses), ("learner", learner)):
            if owner.skeleton != mdp.skeleton:
                raise InputError(name, f"one over another skeleton, {owner.skeleton!r}", f"{mdp.skeleton!r}")
        first = losses.at(0)
        self._criteria = (learner.criterion, self.criterion)
        for one in self._criteria:
            one.value(mdp.skeleton, occupancy(mdp, learner.policy), first)  # says so if it cannot take such losses
        self._started = learner.episode
        self._criterion_shown = self.criterion.shown
        self._described = {key: value for key, value in learner.description().items() if key != "episode"}
        self.ledger = Ledger(np.zeros((mdp.skeleton.num_transitions, losses.dimensions or 1)))
        self.path = path
        self.policies: dict[int, FloatArray] | _PolicyLog = {}
        if losses.memory and self.criterion != TotalLoss():
            # The comparator will ask for the losses again, and these for the policies that they answered.
            log = None if path is None else path.with_name(f"{path.name}.policies")
            self.policies = _PolicyLog(mdp.skeleton.num_pairs, log)
        self._key = stream_key(seed, "world", "trajectories")

    def close(self) -> None:
        if isinstance(self.policies, _PolicyLog):
            self.policies.close()

    @cached_property
    def identity(self) -> dict[str, str]:
        """Hashes of all that determines the game but its length."""
        sk, losses = self.mdp.skeleton, self.losses
        places = [0] if losses.memory else (marks(losses.episodes or 10**6) - 1).tolist()
        seen = np.array([losses.at(t) for t in places])
        world = (sk.layer_ptr, sk.pair_ptr, sk.transition_ptr, sk.successor, self.mdp.transition)
        probes = [one.probe(sk, (losses.dimensions or 1,)).encode() for one in self._criteria]
        return {
            "world": _hash(*(array.tobytes() for array in world)),
            "losses": _hash(type(losses).__name__.encode(), repr(losses).encode(), seen.tobytes()),
            "learner": _hash(json.dumps(self._described, sort_keys=True).encode()),
            "criterion": _hash(self._criterion_shown.encode(), *probes),
            "seed": f"{self.seed}",
        }

    @property
    def compiled(self) -> bool:
        """Whether blocks can run in compiled code."""
        answers = self.losses.memory == 0 or type(self.losses).reaction is not Losses.reaction
        return self.learner.compiled and answers and self.criterion.terms is not None

    def run(self, episodes: int, show: Callable[[float], None], seconds: float) -> None:
        """Play on up to ``episodes``, and save from time to time where there is a file for it."""
        if self.path is None:
            for done in self._blocks(episodes):
                show(done)
            return
        saved = time.monotonic()
        with _patient() as asked:
            for done in self._blocks(episodes):
                show(done)
                if asked() or done == episodes or time.monotonic() - saved > seconds:
                    self.save()
                    saved = time.monotonic()
                if asked():
                    said = f"stopped after {done:,} of {episodes:,} episodes, saved in {self.path}"
                    raise KeyboardInterrupt(f"{said}; the same call with this checkpoint goes on from there")

    def _blocks(self, episodes: int) -> Iterator[int]:
        """Play on up to ``episodes`` in blocks that end at the marks; gives how many were played after each."""
        stops = marks(episodes)
        length = max(1, min(LONGEST, ENTRIES // self.ledger.total.size))
        # A line at the end of a shorter game is none of this one's.
        self.ledger.lines = [line for line in self.ledger.lines if line["episode"] in stops]
        last = self.ledger.lines[-1]["episode"] if self.ledger.lines else 0
        if self.ledger.episodes == episodes and last != episodes:
            self._mark()  # it was saved here, on the way to a later end
        while self.ledger.episodes < episodes:
            t = self.ledger.episodes
            mark = int(stops[np.searchsorted(stops, t, side="right")])
            stop = min(mark, t + length)
            self._block(t, stop)
            if stop == mark:
                self._mark()
            yield stop

    def _block(self, first: int, stop: int) -> None:
        drawn = uniforms(self._key, first, stop - first, 2 * self.mdp.skeleton.num_layers)
        if self.compiled:
            terms = self.criterion.terms
            assert terms is not None
            reaction = self.losses.reaction(first, stop, self.policies)
            if reaction is None:
                losses = checked_losses(self.mdp.skeleton, self.losses.block(first, stop), first)
            block = make_block(self.mdp.skeleton, reaction or losses, terms, self.ledger.total, drawn)
            self.learner.play_block(make_world(self.mdp), block)
            for b in range(len(block.reaction.policies)):
                self._remember(first + b, block.reaction.policies[b])
            believed = block.paid if self.learner.q is None else block.believed
            self.ledger.add(block.paid, believed, block.gap)
        else:
            for t in range(first, stop):
                self._episode(t, drawn[t - first])

    def _episode(self, t: int, drawn: FloatArray) -> None:
        sk, learner, total = self.mdp.skeleton, self.learner, self.ledger.total
        policy = np.array(learner.policy)
        loss = checked_losses(sk, self.losses.at(t, self.policies)[None], t)[0]
        paid = self.criterion.value(sk, occupancy(self.mdp, policy), loss)
        believed = paid if learner.q is None else self.criterion.value(sk, learner.q, loss)
        trajectory = self._trajectory(policy, drawn)
        total += loss.reshape(total.shape)
        seen = loss if learner.feedback == "full" else loss[trajectory.transitions]
        learner.update(trajectory, frozen(seen))
        if self.losses.memory:
            self._remember(t, policy)
        self.ledger.add(np.array([paid]), np.array([believed]), np.array([learner.gap]))

    def _remember(self, t: int, policy: FloatArray) -> None:
        """For losses that answer to the last few policies."""
        self.policies[t] = policy
        if isinstance(self.policies, dict):
            self.policies.pop(t - self.losses.memory, None)

    def _trajectory(self, policy: FloatArray, drawn: FloatArray) -> Trajectory:
        sk, steps = self.mdp.skeleton, self.mdp.skeleton.num_layers
        out = Trajectory(np.empty(steps + 1, np.int64), np.empty(steps, np.int64), np.empty(steps, np.int64))
        arrays = (sk.pair_ptr, sk.transition_ptr, sk.successor, self.mdp.transition, policy)
        sample_path(*arrays, drawn, out.states, out.pairs, out.transitions)
        return out

    def _mark(self) -> None:
        self.ledger.mark(**self._account())

    def _account(self) -> dict[str, float]:
        """What a line of the ledger says of the learner, with the comparator where that costs next to nothing."""
        more = {"epochs": float(self.learner.epochs)}
        if (rows := self.learner.rows) is not None:
            more["radius"] = float(rows.radii(self.mdp.skeleton).mean())
        if self.criterion == TotalLoss():
            more["comparator"] = total_comparator(self.mdp, self.ledger.total[:, 0], self.ledger.episodes).value
        return more

    def game(self, episodes: int, gap: float, at_end: bool, progress: bool | Callable[[float], None]) -> Game:
        """The account of the game up to its end."""
        if self.ledger.episodes > episodes:
            given = f"{episodes}, but {self.ledger.episodes} are played"
            raise InputError("episodes", given, f"{self.ledger.episodes} or more, or another checkpoint")
        lines = self.ledger.lines
        values: list[float | None]
        gaps: list[float | None]
        if self.criterion == TotalLoss():
            best = total_comparator(self.mdp, self.ledger.total[:, 0], episodes)
            values, gaps = [line["comparator"] for line in lines], [0.0] * len(lines)
        else:
            source = self.losses if self.losses.memory == 0 else Played(self.losses, self.policies)
            prefixes = [episodes] if at_end else [int(line["episode"]) for line in lines]
            with _shown(progress is True, 1, "comparator") as show:
                found = comparators(self.mdp, source, self.criterion, prefixes, gap=gap, progress=show)
            best = found[-1]
            rest = [None] * (len(lines) - len(found))
            values, gaps = [*rest, *(one.value for one in found)], [*rest, *(one.gap for one in found)]
        bounds = map(self._bound, (int(line["episode"]) for line in lines))
        known = zip(lines, values, gaps, bounds, strict=True)
        frame = curve([line | {"comparator": v, "comparator_gap": g, "bound": b} for line, v, g, b in known])
        return Game(self.mdp, self.losses, self.learner, self.criterion, episodes, self.seed, frame, best)

    @property
    def _bound(self) -> Callable[[int], float]:
        """The guarantee, which is of no other criterion, of no other losses, and of a learner that begins."""
        kinds = {"arbitrary"} | ({"oblivious"} if self.losses.memory == 0 else set())
        kinds |= {"stochastic"} if isinstance(self.losses, Stochastic) else set()
        ours = self.criterion == self.learner.criterion and self._started == 0 and self.learner.assumes in kinds
        return self.learner.bound if ours else lambda episodes: inf

    def save(self) -> None:
        assert self.path is not None
        numbers, arrays = self.ledger.state()
        recent = self.policies if isinstance(self.policies, dict) else {}
        about = {"kind": KIND, "version": VERSION, "identity": self.identity, "started": self._started}
        about |= {"ledger": numbers, "policies": sorted(recent)}
        if isinstance(self.policies, _PolicyLog):
            about |= {"policy_log": self.policies.sync()}
        kept = {f"state/{name}": array for name, array in self.learner.state().items()}
        kept |= {"policies": np.array([recent[t] for t in sorted(recent)])}
        write_archive(self.path, about, {**arrays, **kept})

    def load(self) -> None:
        """Take the game up from its checkpoint."""
        assert self.path is not None
        where = f"{self.path}"
        try:
            self._take_up(*read_archive(self.path, KIND, VERSION))
        except InputError as error:
            expected = error.expected.removesuffix(AGAIN) + AGAIN
            place = error.where if where in error.where else f"{where}, {error.where}"
            raise CheckpointError(place, error.given, expected) from None
        except Exception as error:  # whatever is made of a game that is none
            given = f"a game with something missing or odd ({type(error).__name__}: {error})"
            raise CheckpointError(where, given, f"one as it was saved{AGAIN}") from error

    def _take_up(self, about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from what a checkpoint holds, which is checked first."""
        check_like(self.ledger.total, arrays["total"], "total")
        ledger = Ledger.of(about["ledger"], arrays["total"], LINE | self._account().keys())
        started = whole("started", about["started"], 0, MOST)
        other = [name for name, value in self.identity.items() if about["identity"].get(name) != value]
        # The learner may be as it was made, or the one that was interrupted.
        if not other and self._started not in (started, started + ledger.episodes):
            other = ["learner"]
        if other:
            given = f"the checkpoint of another game, with another {' and another '.join(other)}"
            raise InputError(f"{self.path}", given, "one of this game")
        if isinstance(self.policies, _PolicyLog):
            self.policies.take_up(ledger.episodes, about.get("policy_log"))
        else:
            self.policies = self._recent(about["policies"], arrays["policies"], ledger.episodes)
        state = {name[6:]: array for name, array in arrays.items() if name.startswith("state/")}
        self.learner.take_over(state, started + ledger.episodes)
        self.ledger, self._started = ledger, started
        self.learner.episode = started + ledger.episodes

    def _recent(self, episodes: list[int], policies: NDArray[Any], played: int) -> dict[int, FloatArray]:
        """The last few policies, for losses that answer to them."""
        expected = list(range(max(0, played - self.losses.memory), played))
        if episodes != expected or len(policies) != len(expected):
            raise InputError("policies", f"those of {len(policies)} episodes, {episodes}", f"of episodes {expected}")
        return {t: checked_policy(self.mdp.skeleton, policy) for t, policy in zip(episodes, policies, strict=True)}


def _hash(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


@contextmanager
def _shown(
    progress: bool | Callable[[float], None], count: float, title: str = "playing"
) -> Iterator[Callable[[float], None]]:
    """A progress bar on a terminal, nothing elsewhere; or the caller's own."""
    if callable(progress):
        yield progress
        return
    if not (progress and sys.stderr.isatty()):
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=count)
        yield lambda done: bar.update(task, completed=done)


class _PolicyLog:
    """The policies of a game by episode, in a file: beside the checkpoint, or one that vanishes with the game."""

    def __init__(self, pairs: int, path: Path | None) -> None:
        self._width = 8 * pairs
        self._digest = hashlib.sha256()
        self.path = path
        if path is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (open for as long as the game)
        else:
            try:  # not through a link, which may lead to somebody's file
                self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "r+b")
            except OSError as error:
                raise StorageError(f"{path}", f"{error.strerror}", "a file that can be written") from None

    def __setitem__(self, t: int, policy: FloatArray) -> None:
        self._file.seek(t * self._width)
        self._file.write(policy.tobytes())
        self._digest.update(policy.tobytes())  # episodes come in order

    def __getitem__(self, t: int) -> FloatArray:
        self._file.seek(t * self._width)
        row = self._file.read(self._width)
        if len(row) < self._width:
            given = f"no policy of episode {t}"
            raise InputError(f"{self.path or 'policies'}", given, "the file that was written beside the checkpoint")
        return np.frombuffer(row)

    def close(self) -> None:
        self._file.close()

    def sync(self) -> str:
        """Write what is not written yet; gives the checksum of all policies up to now."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._digest.hexdigest()

    def take_up(self, episodes: int, checksum: object) -> None:
        """Go on after so many episodes, whose policies must have the checksum (a game of version 1 has none)."""
        left = episodes * self._width
        self._file.seek(0)
        while left > 0 and (part := self._file.read(min(left, PART))):
            self._digest.update(part)
            left -= len(part)
        if left > 0 or checksum not in (None, self._digest.hexdigest()):
            raise InputError(f"{self.path}", "other policies", "those that were written with the checkpoint")


@contextmanager
def _patient() -> Iterator[Callable[[], bool]]:
    """Ctrl-C waits until it is asked for: an episode half entered in the ledger must not be saved."""
    asked = False

    def ask(number: int, frame: object) -> None:
        nonlocal asked
        asked = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # only the main thread is ever interrupted
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
