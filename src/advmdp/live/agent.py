"""The agent: decisions in a running system, for one or many episodes at a time, with feedback at any time.

A decision is made and logged as soon as the state is known: by ``begin`` for the first, by ``arrive`` for the next.
``act`` only reads it, and needs no commit.  :mod:`advmdp.live.recording` makes all changes.
"""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from advmdp.core.errors import InputError
from advmdp.core.files import path_of
from advmdp.core.wording import plural
from advmdp.criteria import Criterion
from advmdp.learners.base import Learner
from advmdp.live.answers import Choice, Explanation, Status
from advmdp.live.costs import Missing, Outside
from advmdp.live.explaining import explain
from advmdp.live.log import Log
from advmdp.live.opening import check_same, made, rebuilt
from advmdp.live.recording import Recorder
from advmdp.live.worlds import Step
from advmdp.model.by_name import ByName, Label, action_name, policy_by_name, state_name
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton


class Agent:
    """Make decisions in a running system, learn from feedback at any time, and keep everything in a file.

    :meth:`open` makes an agent. Its methods may be called from several threads.

    Parameters
    ----------
    recorder
        The open log and the state. :meth:`open` makes it.

    Examples
    --------
    >>> import advmdp as am
    >>> sk = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])
    >>> agent = am.Agent.open(":memory:", skeleton=sk, units=(0, 90), seed=7)
    >>> episode = agent.begin()
    >>> episode.act().probabilities
    {'bus': 0.5, 'walk': 0.5}
    >>> episode.arrive("work")
    >>> agent.tell(episode.id, {("home", "bus"): 31, ("home", "walk"): 24})
    >>> agent.status().told
    1
    >>> agent.close()
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        skeleton: Skeleton | MDP | None = None,
        learner: str | None = None,
        units: tuple[float, float] | None = None,
        seed: int | None = None,
        outside: Outside | None = None,
        missing: Missing | None = None,
        patience: int | None = None,
        criterion: Criterion | None = None,
        durable: bool = True,
        **parameters: Any,
    ) -> "Agent":
        """Open the agent in a file, or create it.

        If the file exists, only ``path`` is needed. Other arguments must then be the same as before.

        Parameters
        ----------
        path
            The log, an SQLite file. ":memory:" keeps it in memory only.
        skeleton
            The world without its probabilities. For a learner that knows the dynamics, an MDP.
        learner
            The name of a learner that supports late losses. "SelfTuning", the default, learns from whole losses
            (:meth:`tell`). "UOBREPS" learns from the costs along its path (:meth:`Episode.cost`), or with ``groups``
            from the losses of all groups that its path sees (:meth:`tell`).
        units
            The smallest and the largest cost of a step, (0, 1) by default.
        seed
            The seed of the random stream for actions, 0 by default.
        outside
            What to do with costs outside ``units``: "clip" them and count them (the default), or "error".
        missing
            The cost of entries that a whole loss lacks: "carry" the last one told (the default), "error", or a number.
        patience
            The number of later episodes after which an episode without its loss is dropped; 1,000 by default.
        criterion
            The criterion to minimise; the total loss by default.
        durable
            Whether a call waits until its data is on disk. With False, data survives a crash of the process but not of
            the machine.
        **parameters
            Parameters of the learner, such as ``horizon``.

        Returns
        -------
        Agent
            The agent, which :meth:`close` or a ``with`` block closes.

        Raises
        ------
        InputError
            If an argument is missing, or differs from the one that the file was created with.
        LogError
            If the file is damaged, belongs to another program, or is in use by another agent.
        """
        given = {
            "learner": learner, "units": units, "seed": seed, "outside": outside, "missing": missing,
            "patience": patience, "criterion": criterion,
        }  # fmt: skip
        said = {name: value for name, value in given.items() if value is not None}
        # Make the agent before its file, so that invalid arguments leave no file behind.
        new = None if path_of("path", path).exists() else made(path, skeleton, said, parameters)
        log = Log.write(path, durable)
        try:
            if log.last == 0:
                state, opened = new or made(path, skeleton, said, parameters)
                log.append([opened])
                return cls(Recorder(log, state, 0))
            state, kept = rebuilt(log)
            check_same(state, skeleton, said, parameters)
            return cls(Recorder(log, state, kept))
        except BaseException:
            log.close()
            raise

    def begin(self, event_id: str | None = None) -> "Episode":
        """Begin an episode with the current policy, and make its first decision.

        Parameters
        ----------
        event_id
            Your own id, which makes the call repeatable: the same id gives the same episode.

        Returns
        -------
        Episode
            The episode. Its id is durable when this returns.
        """
        with self._recorder.mutex:
            return Episode(self._recorder, self._recorder.begin(event_id))

    def episode(self, id: int) -> "Episode":
        """Find the episode with this id, open or not.

        Parameters
        ----------
        id
            The id of an episode that this agent began.

        Returns
        -------
        Episode
            The episode.
        """
        with self._recorder.mutex:
            return Episode(self._recorder, self._recorder.find(id).number)

    def tell(self, episode: "int | Episode", loss: ByName | Any) -> None:
        """Tell the whole loss of an episode, at any time after it began.

        Parameters
        ----------
        episode
            The episode or its id.
        loss
            Costs in your units: {(state, action): cost} or {(state, action, next state): cost}, an array over
            transitions or pairs, or a frame with the columns state, action, cost (and next), or with one row and
            columns such as "home/bus".

        Raises
        ------
        InputError
            If the learner learns only from the costs along its path, if an entry is missing and ``missing`` is "error",
            or if a name is unknown.
        ConflictError
            If a different loss was told for this episode.
        """
        with self._recorder.mutex:
            self._recorder.tell(episode.id if isinstance(episode, Episode) else episode, loss)

    def observe(
        self,
        states: Sequence[Label],
        actions: Sequence[Label],
        costs: Sequence[float] | None = None,
        event_id: str | None = None,
    ) -> int:
        """Record an episode that somebody else decided; its transitions are counted.

        Parameters
        ----------
        states, actions
            The path from the start, complete or not, with one more state than actions.
        costs
            The costs of its steps, if known. They are logged for evaluation, but not learned.
        event_id
            Your own id, which makes the call repeatable without counting twice.

        Returns
        -------
        int
            The id of the episode.
        """
        with self._recorder.mutex:
            return self._recorder.observe(states, actions, costs, event_id)

    def extend(self, steps: Iterable[Step] = (), remove: Iterable[tuple[str, str]] = ()) -> None:
        """Change the world: add steps, with new states, actions or successors, and remove actions.

        All counts are kept, by name. Open episodes continue in the world and with the policy with which they began. In
        later episodes, removed actions have probability 0, and unreachable states are gone. A learner with full
        information learns the last losses again, in which new transitions get the smallest loss of their layer. A
        bandit learner keeps only the counts, and does not learn the costs of open episodes.

        Parameters
        ----------
        steps
            New rows (state, action, next state). Existing rows do not change.
        remove
            Pairs (state, action) that are no longer possible.

        Raises
        ------
        InputError
            If the new world breaks a rule of the model, or a parameter of the learner fits only the old world.
        """
        with self._recorder.mutex:
            self._recorder.extend(steps, remove)

    def policy(self) -> dict[Label, dict[Label, float]]:
        """Return the policy for the next episode; removed actions have probability 0.

        Returns
        -------
        dict
            {state: {action: probability}}.
        """
        with self._recorder.mutex:
            self._recorder.check_usable()
            world = self._recorder.state.world
            found = policy_by_name(world.skeleton, self.learner.policy)
            for state, action in world.removed:
                if state in found:
                    found[state][action] = 0.0
            return found

    def status(self) -> Status:
        """Return what has happened so far, and what is outstanding.

        Returns
        -------
        Status
            Episodes begun, finished, told and outstanding; epochs, the mean radius, the last gap, what was paid.
        """
        with self._recorder.mutex:
            self._recorder.check_usable()
            state, learner = self._recorder.state, self.learner
            row_set = learner.row_set
            radius = None if row_set is None else float(row_set.radii(learner.skeleton).mean())
            outstanding = sum(r.handle is not None for r in state.running.values())
            running = sum(r.ended is None for r in state.running.values())
            return Status(
                **state.counts, running=running, outstanding=outstanding, paid=state.paid, epochs=learner.epochs,
                radius=radius, gap=learner.gap, version=state.version, world=state.world.number, events=self.log.last,
            )  # fmt: skip

    def explain(self, state: Label) -> dict[Label, Explanation]:
        """Explain the policy in a state.

        The costs are the means of those learned so far, each episode alike. The learner may know better: SelfTuning
        follows weekdays and other patterns, so it may rightly prefer an action that costs more on average. The
        probabilities say what it does; the costs say what has been the case.

        The expectation is that of the policy for the next episode under the estimated probabilities. The interval has
        the least and the greatest over the confidence set, and over all costs within the units where none is known.

        Parameters
        ----------
        state
            The name of a state, or its number if states have no names.

        Returns
        -------
        dict
            By action, an ``Explanation``: its ``probability``, the expected ``cost`` from here to the end, between
            ``low`` and ``high``, and its ``visits``.
        """
        with self._recorder.mutex:
            self._recorder.check_usable()
            return explain(self._recorder.state, state)

    def report(
        self, path: str | PathLike[str], policies: Mapping[str, ByName] | None = None, delta: float = 0.05
    ) -> Path:
        """Write a page: what was paid, what simple rules would have paid, visits, radii, and alarms.

        Parameters
        ----------
        path
            The HTML file, which is self-contained.
        policies
            Fixed policies to compare with, by name, such as {"incumbent": {"home": "bus"}}.
        delta
            Intervals and alarms hold with probability ``1 - delta``.

        Returns
        -------
        Path
            The file.
        """
        from advmdp.live.report import write_report

        with self._recorder.mutex:
            self._recorder.check_usable()
            return write_report(self, path, policies, delta)

    def state_bytes(self) -> bytes:
        """Serialise the state of the agent.

        Returns
        -------
        bytes
            Equal for agents with the same past.
        """
        with self._recorder.mutex:
            self._recorder.check_usable()
            return self._recorder.state.dump()

    @property
    def skeleton(self) -> Skeleton:
        """The current world."""
        return self._recorder.state.world.skeleton

    @property
    def learner(self) -> Learner:
        """The learner, for inspection only; changes to it are not logged."""
        return self._recorder.state.learner

    @property
    def units(self) -> tuple[float, float]:
        """The smallest and the largest cost of a step."""
        return self._recorder.state.terms.units[:2]

    @property
    def log(self) -> Log:
        """The log; :class:`advmdp.History` reads it by episodes."""
        return self._recorder.log

    def close(self) -> None:
        """Write a snapshot, which makes opening faster, and close the file."""
        with self._recorder.mutex:
            self._recorder.close()

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = self._recorder.state
        counts, paid = state.counts, f"paid {state.paid:,.2f} so far"
        done = f"{plural(counts['begun'], 'episode')} begun, {counts['told']:,} told"
        return f"Agent({self.log.path}, {state.terms.learner}: {paid}; {done})"


class Episode:
    """An episode of an agent; :meth:`Agent.begin` begins one, :meth:`Agent.episode` finds it again.

    Parameters
    ----------
    recorder
        The recorder of the agent.
    id
        The id, durable and unique within the agent.

    Examples
    --------
    >>> import advmdp as am
    >>> sk = am.Skeleton.from_steps([("home", "bus", "station"), ("station", "train", "work")])
    >>> with am.Agent.open(":memory:", skeleton=sk, units=(0, 90)) as agent:
    ...     episode = agent.begin()
    ...     episode.arrive("station", cost=12.5)
    ...     print(episode.state, episode.act().action, agent.status().paid)
    station train 12.5
    """

    def __init__(self, recorder: Recorder, id: int) -> None:
        self._recorder = recorder
        self.id = id

    @property
    def state(self) -> Label:
        """The current state of the episode."""
        with self._recorder.mutex:
            r = self._recorder.find(self.id)
            sk = self._recorder.state.worlds[r.world].skeleton
            return state_name(sk, int(sk.successor[r.transitions[-1]]) if r.transitions else 0)

    @property
    def done(self) -> bool:
        """Whether the episode has ended."""
        with self._recorder.mutex:
            return self._recorder.find(self.id).ended is not None

    def act(self) -> Choice:
        """Return what to do now. Until :meth:`arrive`, the answer stays the same.

        Returns
        -------
        Choice
            The state, the action, its ``probability``, the ``probabilities`` of all actions, the ``version`` of the
            policy and the step.

        Raises
        ------
        InputError
            If the episode has ended.
        """
        with self._recorder.mutex:
            r = self._recorder.find(self.id)
            if r.ended:
                raise InputError(f"episode {self.id}", f"it has ended ({r.ended})", "an episode that has not ended")
            sk, x = self._recorder.state.worlds[r.world].skeleton, r.state
            first, last = int(sk.pair_ptr[x]), int(sk.pair_ptr[x + 1])
            names = [action_name(sk, x, p) for p in range(first, last)]
            shares = dict(zip(names, r.policy[first:last].tolist(), strict=True))
            action = names[r.pairs[-1] - first]
            return Choice(state_name(sk, x), action, shares[action], shares, r.version, len(r.transitions))

    def arrive(self, state: Label, cost: float | None = None) -> None:
        """Report where the last decision led and, optionally, its cost, in one commit.

        The episode ends when it reaches the last state.

        Parameters
        ----------
        state
            The state reached.
        cost
            The cost of the step in your units, if you know it already.

        Raises
        ------
        ConflictError
            If a different state was reported for this step.
        InputError
            If the last decision cannot lead there, or the episode has ended.
        """
        with self._recorder.mutex:
            self._recorder.arrive(self.id, state, cost)

    def cost(self, cost: float, at: Label | None = None) -> None:
        """Report the cost of a step, in your units.

        Parameters
        ----------
        cost
            The cost. A bandit learner learns when the episode has ended and all its costs are known. A learner with
            full information does not learn from single costs but from :meth:`Agent.tell`; they count only as paid.
        at
            The state in which the step began; by default that of the last finished step. Pass it if the call may be
            repeated after the next step.
        """
        with self._recorder.mutex:
            self._recorder.cost(self.id, cost, at)

    def end(self) -> None:
        """End the episode before its last state, and count the transitions so far."""
        with self._recorder.mutex:
            self._recorder.end(self.id)

    def __repr__(self) -> str:
        return f"Episode({self.id})"
