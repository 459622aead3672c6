"""A game in progress: plays the episodes, in compiled blocks where possible, and records their cost."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from advmdp.core.arrays import FloatArray, expect, frozen, whole
from advmdp.core.errors import InputError
from advmdp.core.streams import stream_key, uniforms
from advmdp.criteria import Criterion, TotalLoss
from advmdp.game.checkpoint import save
from advmdp.game.interrupts import patient
from advmdp.game.late import LateLosses
from advmdp.game.ledger import CURVE, KNOWN, Ledger, curve, marks
from advmdp.game.policy_log import PolicyLog
from advmdp.game.progress import shown
from advmdp.game.result import Game
from advmdp.learners.base import Learner
from advmdp.learners.episode import checked_losses, make_block
from advmdp.losses import Losses, Stochastic
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import occupancy
from advmdp.planning.hindsight import Played, comparators, switching_comparator, total_comparator

ENTRIES = 2**19
"""The most losses in a block: 4 MB."""
LONGEST = 8192
"""The most episodes in a block, so that progress is visible and checkpoints are frequent."""


class Match:
    """A game in progress."""

    def __init__(
        self,
        mdp: MDP,
        losses: Losses,
        learner: Learner,
        seed: int,
        criterion: Criterion | None,
        path: Path | None,
        compares: bool = True,
        late: LateLosses | None = None,
    ) -> None:
        self.mdp = expect(MDP, mdp, "mdp")
        self.losses = expect(Losses, losses, "losses")  # type: ignore[type-abstract]
        self.learner = expect(Learner, learner, "learner")  # type: ignore[type-abstract]
        chosen = learner.criterion if criterion is None else criterion
        self.criterion = expect(Criterion, chosen, "criterion")  # type: ignore[type-abstract]
        self.seed = whole("seed", seed, 0)
        for name, owner in (("losses", losses), ("learner", learner)):
            if owner.skeleton != mdp.skeleton:
                raise InputError(name, f"made for another skeleton, {owner.skeleton!r}", f"{mdp.skeleton!r}")
        first = losses.at(0)
        self._criteria = (learner.criterion, self.criterion)
        for one in self._criteria:
            one.value(mdp.skeleton, occupancy(mdp, learner.policy), first)  # raises if it does not accept such losses
        self.started = learner.episode
        self.late = late
        self._criterion_shown = self.criterion.shown
        self._described = _described(learner)
        self.ledger = Ledger(np.zeros((mdp.skeleton.num_transitions, losses.dimensions or 1)))
        self.path = path
        self.policies: dict[int, FloatArray] | PolicyLog = {}
        if compares and losses.memory and self.criterion != TotalLoss():
            # The comparator will draw the losses again, and these depend on the policies played.
            log = None if path is None else path.with_name(f"{path.name}.policies")
            self.policies = PolicyLog(mdp.skeleton.num_pairs, log)
        self._key = stream_key(seed, "world", "trajectories")

    def close(self) -> None:
        if isinstance(self.policies, PolicyLog):
            self.policies.close()

    @cached_property
    def identity(self) -> dict[str, str]:
        """Hashes of everything that determines the game, except its length."""
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
        } | ({} if self.late is None else {"delay": self._hash_of_delays(self.late)})

    def _hash_of_delays(self, late: LateLosses) -> str:
        length = late.last or self.losses.episodes or 10**6
        return _hash(*(f"{late.of(int(t))}".encode() for t in marks(length) - 1))

    @property
    def identity_of_version_1(self) -> dict[str, str]:
        """The identity in checkpoints of version 1, which hash criteria differently."""
        described = {key: value for key, value in self._described.items() if key != "criterion_probe"}
        probes = [one.probed(self.mdp.skeleton, self.losses.dimensions or 1) for one in self._criteria]
        return self.identity | {
            "learner": _hash(json.dumps(described, sort_keys=True).encode()),
            "criterion": _hash(self._criterion_shown.encode(), *probes),
        }

    @property
    def compiled(self) -> bool:
        """Whether blocks can run in compiled code."""
        answers = self.losses.memory == 0 or type(self.losses).reaction is not Losses.reaction
        return self.learner.compiled and answers and self.criterion.terms is not None and self.late is None

    def run(self, episodes: int, show: Callable[[float], None], seconds: float) -> None:
        """Play up to ``episodes``, and save from time to time if there is a checkpoint file."""
        if self.path is None:
            for done in self._blocks(episodes):
                show(done)
            return
        saved = time.monotonic()
        with patient() as asked:
            for done in self._blocks(episodes):
                show(done)
                if asked() or done == episodes or time.monotonic() - saved > seconds:
                    save(self)
                    saved = time.monotonic()
                if asked():
                    said = f"stopped after {done:,} of {episodes:,} episodes, saved in {self.path}"
                    raise KeyboardInterrupt(f"{said}; to continue, repeat the call with this checkpoint")

    def _blocks(self, episodes: int) -> Iterator[int]:
        """Play up to ``episodes`` in blocks that end at the marks; yield the number played after each block."""
        stops = marks(episodes)
        length = max(1, min(LONGEST, ENTRIES // self.ledger.total.size))
        # The last line of a shorter game may not belong to this one.
        self.ledger.lines = [line for line in self.ledger.lines if line["episode"] in stops]
        last = self.ledger.lines[-1]["episode"] if self.ledger.lines else 0
        if self.ledger.episodes == episodes and last != episodes:
            self._mark()  # a longer game was saved at this episode
        while self.ledger.episodes < episodes:
            t = self.ledger.episodes
            mark = int(stops[np.searchsorted(stops, t, side="right")])
            stop = min(mark, t + length)
            self._block(t, stop)
            if stop == mark:
                self._mark()
            yield stop

    def _block(self, first: int, stop: int) -> None:
        drawn = uniforms(self._key, first, stop - first, 2 * self.mdp.skeleton.num_steps)
        if self.compiled:
            terms = self.criterion.terms
            assert terms is not None
            reaction = self.losses.reaction(first, stop, self.policies)
            if reaction is None:
                losses = checked_losses(self.mdp.skeleton, self.losses.block(first, stop), first)
            block = make_block(self.mdp.skeleton, reaction or losses, terms, self.ledger.total, drawn)
            self.learner.play_block(self.mdp.dynamics, block)
            for b, policy in enumerate([] if reaction is None else reaction.policies):
                self._remember(first + b, policy)
            believed = block.paid if self.learner.q is None else block.believed
            self.ledger.add(block.paid, believed, block.gap)
        else:
            for t in range(first, stop):
                self._episode(t, drawn[t - first])

    def _episode(self, t: int, drawn: FloatArray) -> None:
        sk, learner, total = self.mdp.skeleton, self.learner, self.ledger.total
        number = 0 if self.late is None else learner.begin()
        policy = np.array(learner.policy)
        loss = checked_losses(sk, self.losses.at(t, self.policies)[None], t)[0]
        paid = self.criterion.value(sk, occupancy(self.mdp, policy), loss)
        believed = paid if learner.q is None else self.criterion.value(sk, learner.q, loss)
        trajectory = self.mdp.sample_from(policy, drawn)
        total += loss.reshape(total.shape)
        seen = learner.observed(trajectory, loss)
        if self.late is None:
            learner.update(trajectory, frozen(seen))
        else:
            self.late.reveal(learner, t, number, trajectory, seen)
        if self.losses.memory:
            self._remember(t, policy)
        self.ledger.add(np.array([paid]), np.array([believed]), np.array([learner.gap]))

    def _remember(self, t: int, policy: FloatArray) -> None:
        """Keep the policy, for losses that react to the last few policies."""
        self.policies[t] = policy
        if isinstance(self.policies, dict):
            self.policies.pop(t - self.losses.memory, None)

    def _mark(self) -> None:
        self.ledger.mark(**self.account())

    def account(self) -> dict[str, float]:
        """The learner's entries in a line of the ledger, and the comparator if it is cheap to compute."""
        more = {"epochs": float(self.learner.epochs)}
        if (row_set := self.learner.row_set) is not None:
            more["radius"] = float(row_set.radii(self.mdp.skeleton).mean())
        if self.criterion == TotalLoss():
            more["comparator"] = total_comparator(self.mdp, self.ledger.total[:, 0], self.ledger.episodes).value
        return more | self._marked()

    def _marked(self) -> dict[str, float]:
        """The learner's own entries, whose names must not clash with other columns."""
        marked = {str(name): float(value) for name, value in self.learner.marked().items()}
        if taken := sorted(marked.keys() & (KNOWN | set(CURVE))):
            raise InputError(f"marked() of {type(self.learner).__name__}", taken[0], "a name not used by the curve")
        return marked

    def game(
        self, episodes: int, gap: float, at_end: bool, switches: list[int], progress: bool | Callable[[float], None]
    ) -> Game:
        """The finished game."""
        if self.ledger.episodes > episodes:
            given = f"{episodes}, but {self.ledger.episodes} have been played"
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
            with shown(progress is True, 1, "comparator") as show:
                found = comparators(self.mdp, source, self.criterion, prefixes, gap=gap, progress=show)
            best = found[-1]
            rest = [None] * (len(lines) - len(found))
            values, gaps = [*rest, *(one.value for one in found)], [*rest, *(one.gap for one in found)]
        bounds = map(self._bound, (int(line["episode"]) for line in lines))
        known = zip(lines, values, gaps, bounds, strict=True)
        frame = curve(
            [line | {"comparator": v, "comparator_gap": g, "bound": b} for line, v, g, b in known],
            self._switching(episodes, switches, progress),
            self.learner.marked(),
        )
        return Game(episodes, self.seed, frame, best, self.mdp, self.losses, self.learner, self.criterion)

    def _switching(
        self, episodes: int, switches: list[int], progress: bool | Callable[[float], None]
    ) -> dict[int, FloatArray]:
        """The cost of the best sequences with these numbers of switches, at each line of the ledger."""
        if not switches:
            return {}
        with shown(progress is True, 1, "switches") as show:
            found = switching_comparator(self.mdp, self.losses, episodes, max(switches), progress=show)
        places = [int(line["episode"]) for line in self.ledger.lines]
        return {most: found.values[most, places] for most in switches}

    @property
    def _bound(self) -> Callable[[int], float]:
        """The learner's bound, infinite unless it applies: same criterion, suitable losses, and a new learner."""
        kinds = {"arbitrary"} | ({"oblivious"} if self.losses.memory == 0 else set())
        kinds |= {"stochastic"} if isinstance(self.losses, Stochastic) else set()
        ours = self.criterion == self.learner.criterion and self.started == 0 and self.learner.assumes in kinds
        return self.learner.bound if ours else lambda episodes: inf


def _described(learner: Learner) -> dict[str, Any]:
    """The identity of a learner; parameters that older checkpoints lack count only if they differ from the default."""
    described = {key: value for key, value in learner.description().items() if key != "episode"}
    told = described["parameters"].items()
    parameters = {key: value for key, value in told if key not in learner.added or value != learner.added[key]}
    return described | {"parameters": parameters}


def _hash(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()
