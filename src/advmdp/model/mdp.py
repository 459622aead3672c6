"""The world: a skeleton with its transition function P, and the trajectories drawn from it.

M = (X, A, P) of Section 2, without the losses, which belong to the adversary (:mod:`advmdp.losses`).  P is a vector
over transitions; its part for each pair (x, a) is the distribution P(.|x, a).  A trajectory
U = (x_0, a_0, x_1, ..., a_{L-1}, x_L) is drawn as Algorithm 1 does: a_k ~ pi(.|x_k), x_{k+1} ~ P(.|x_k, a_k).
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advmdp.core.arrays import FloatArray, exact_floats, expect, floats, frozen, whole
from advmdp.core.errors import InputError
from advmdp.core.html import card
from advmdp.core.streams import generator
from advmdp.model.by_name import ByName
from advmdp.model.kernels.evaluation import sample
from advmdp.model.kernels.world import Dynamics
from advmdp.model.naming import layered
from advmdp.model.picture import layers_svg
from advmdp.model.policy import broken_policy, policy_vector
from advmdp.model.skeleton import Skeleton
from advmdp.model.tables import (
    TOLERANCE,
    Table,
    check_dense,
    check_sparse,
    checked_sizes,
    dense_pointers,
    distribution,
    no_distribution,
    no_probability,
)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The path of one episode, as numbers of states, pairs and transitions.

    Attributes
    ----------
    states
        The L + 1 states visited.
    pairs
        The L pairs (state, action).
    transitions
        The L transitions (state, action, next state).

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> mdp = am.MDP.from_steps([("home", "bus", "work", 1.0), ("home", "walk", "work", 1.0)])
    >>> path = mdp.sample(am.deterministic_policy(mdp.skeleton, [1]), np.random.default_rng(0))
    >>> [mdp.skeleton.pair_label(p) for p in path.pairs]
    ['home/walk']
    """

    states: NDArray[np.int64]
    pairs: NDArray[np.int64]
    transitions: NDArray[np.int64]

    @classmethod
    def empty(cls, steps: int, *shape: int) -> "Trajectory":
        """Allocate one trajectory, or an array of them.

        Parameters
        ----------
        steps
            The number of steps, L.
        shape
            The shape of the array of trajectories; a single one by default.

        Returns
        -------
        Trajectory
            With undefined entries.
        """
        return cls(*(np.empty((*shape, length), np.int64) for length in (steps + 1, steps, steps)))

    @classmethod
    def from_names(cls, sk: Skeleton, states: Sequence[str | int], actions: Sequence[str | int]) -> "Trajectory":
        """Make a trajectory from its states and actions.

        Parameters
        ----------
        sk
            The skeleton.
        states
            Names or numbers of x_0 to x_L.
        actions
            Names or numbers of a_0 to a_{L-1}.

        Returns
        -------
        Trajectory
            With the numbers of its states, pairs and transitions.

        Raises
        ------
        InputError
            If a name is unknown, a step is impossible, or the path does not lead from the start to the end.

        Examples
        --------
        >>> import advmdp as am
        >>> sk = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])
        >>> am.Trajectory.from_names(sk, ["home", "work"], ["walk"]).transitions
        array([1])
        """
        taken = path_from_names(sk, states, actions)
        if len(taken.transitions) < expect(Skeleton, sk, "skeleton").num_steps:
            given = f"{len(taken.transitions)} steps, to {sk.state_label(int(taken.states[-1]))}"
            raise InputError("trajectory", given, f"{sk.num_steps} steps, from the start to the end")
        return taken


def path_from_names(sk: Skeleton, states: Sequence[str | int], actions: Sequence[str | int]) -> Trajectory:
    """The path from the start through these states; it may stop before the end."""
    listed = all(hasattr(part, "__len__") and not isinstance(part, str) for part in (states, actions))
    if not listed or len(states) != len(actions) + 1:
        raise InputError(
            "trajectory", f"states {states!r}, actions {actions!r}", "lists of states and actions, with one state more"
        )
    numbers = [sk.state(state) for state in states]
    if numbers[0] != 0:
        raise InputError("trajectory", f"a start in {sk.where_state(numbers[0])}", f"{sk.where_state(0)}")
    pairs = [sk.pair(x, action) for x, action in zip(numbers, actions, strict=False)]
    taken = [sk.transition(x, a, y) for x, a, y in zip(numbers, actions, numbers[1:], strict=False)]
    return Trajectory(*(np.array(part, np.int64) for part in (numbers, pairs, taken)))


@dataclass(frozen=True, init=False, eq=False, repr=False)
class MDP:
    """A skeleton with its transition probabilities.

    Learners see it only if their algorithm assumes known dynamics.

    Parameters
    ----------
    skeleton
        Layers, actions and possible successors.
    transition
        ``P(x'|x, a)`` for each transition. The row of each pair sums to one; rounding up to 1e-9 is corrected.

    Raises
    ------
    ModelError
        If a probability is negative or a row does not sum to one.

    Examples
    --------
    >>> import advmdp as am
    >>> am.MDP.random(layers=[1, 5, 5, 1], actions=4, seed=0)
    MDP(3 steps, layers 1-5-5-1, 12 states, 4 actions, 44 pairs, 140 transitions)
    """

    skeleton: Skeleton
    transition: FloatArray

    def __init__(self, skeleton: Skeleton, transition: ArrayLike) -> None:
        expect(Skeleton, skeleton, "skeleton")
        rows = exact_floats(transition, "transition", (skeleton.num_transitions,))
        object.__setattr__(self, "skeleton", skeleton)
        object.__setattr__(self, "transition", frozen(_normalised(skeleton, rows)))

    @cached_property
    def dynamics(self) -> Dynamics:
        """Skeleton and probabilities in the form that the kernels read."""
        return Dynamics(self.skeleton, self.transition)

    @classmethod
    def dense(cls, transition: Sequence[ArrayLike], initial: ArrayLike | None = None) -> "MDP":
        """Make an MDP from one array for each step.

        Parameters
        ----------
        transition
            For each step k an array P_k of shape (states of layer k, actions, states of layer k + 1).
        initial
            The distribution over the first layer, if it has several states; a start is then added. An end is added
            after a last layer of several states.

        Returns
        -------
        MDP
            With every entry as a possible transition, zeros included.

        Raises
        ------
        InputError
            If shapes do not fit together.
        ModelError
            If a row is not a distribution.
        """
        if not isinstance(transition, Iterable):
            raise InputError("transition", f"{transition!r}", "one array for each step")
        steps = [floats(rows, f"P_{k}") for k, rows in enumerate(transition)]
        for k, rows in enumerate(steps):
            before = steps[k - 1].shape[-1] if k else rows.shape[0] if rows.ndim else 0
            if rows.ndim != 3 or rows.shape[0] != before or 0 in rows.shape:
                raise InputError(f"P_{k}", f"shape {rows.shape}", f"(|X_{k}| = {before}, actions, |X_{k + 1}|)")
        if not steps:
            raise InputError("transition", "no steps", "one array for each step")
        for k, rows in enumerate(steps):
            check_dense(rows, f"P_{k}", unavailable=False)
        if (start := _initial(initial, steps[0].shape[0])) is not None:
            steps.insert(0, start.reshape(1, 1, -1))
        if steps[-1].shape[2] > 1:
            steps.append(np.ones((steps[-1].shape[2], 1, 1)))
        sizes = [rows.shape[0] for rows in steps] + [1]
        skeleton = Skeleton(*dense_pointers(sizes, [rows.shape[1] for rows in steps]))
        return cls(skeleton, np.concatenate([rows.ravel() for rows in steps]))

    @classmethod
    def sparse(
        cls,
        layers: Sequence[int],
        state: ArrayLike,
        action: ArrayLike,
        successor: ArrayLike,
        probability: ArrayLike,
        initial: ArrayLike | None = None,
    ) -> "MDP":
        """Make an MDP from one row for each possible transition, in any order.

        Parameters
        ----------
        layers
            The number of states in each layer; states are numbered through all layers.
        state
            The state that each transition leaves.
        action
            Its action; the actions of a state are 0, 1, 2, ...
        successor
            The state that it leads to.
        probability
            Its probability, given state and action.
        initial
            The distribution over the first layer, if it has several states; a start is then added. An end is added
            after a last layer of several states.

        Returns
        -------
        MDP
            With the given transitions.

        Raises
        ------
        InputError
            If ``initial`` is missing or not needed.
        ModelError
            If a row is not a distribution.
        """
        table = Table.of(layers, state, action, successor, probability)
        if (start := _initial(initial, table.sizes[0])) is not None:
            # Check now, before an added start shifts the numbers, so that errors name states as given.
            check_sparse(table.state, table.action, table.successor, table.probability, "state {}, action {}")
            table = table.with_start(start)
        pointers, transition = table.with_end().compress()
        return cls(Skeleton(*pointers), transition)

    @classmethod
    def from_steps(
        cls,
        steps: Iterable[tuple[Hashable, Hashable, Hashable, float]],
        initial: Mapping[Hashable, float] | None = None,
    ) -> "MDP":
        """Make an MDP from named steps; the layers follow from the steps.

        Parameters
        ----------
        steps
            Rows (state, action, next state, probability), in any order. All paths to a state must have the same length;
            otherwise use :func:`advmdp.time_expand`.
        initial
            The distribution over the states that no step leads to, if there are several.

        Returns
        -------
        MDP
            With the names of states and actions.

        Raises
        ------
        ModelError
            If a row is not a distribution, or if the steps do not form layers.

        Examples
        --------
        >>> import advmdp as am
        >>> am.MDP.from_steps([("home", "bus", "work", 1.0), ("home", "walk", "work", 1.0)])
        MDP(1 step, layers 1-1, 2 states, 2 actions, 2 pairs, 2 transitions)
        """
        table, state_names, action_names = layered(steps, initial)
        pointers, transition = table.compress()
        return cls(Skeleton(*pointers, state_names, action_names), transition)

    @classmethod
    def from_gymnasium(cls, env: object, steps: int) -> "MDP":
        """Make an MDP from a Gymnasium environment that has a tabular model.

        Rewards are ignored. ``advmdp.integrations.gymnasium.tabular_model`` returns them too, as losses.

        Parameters
        ----------
        env
            The environment, or its id.
        steps
            The number of steps of an episode.

        Returns
        -------
        MDP
            The environment, unrolled in time.
        """
        from advmdp.model.gymnasium_tables import unrolled

        return unrolled(env, steps).mdp

    @classmethod
    def random(
        cls,
        layers: Sequence[int],
        actions: int,
        seed: int,
        branching: int | None = None,
        concentration: float = 1.0,
    ) -> "MDP":
        """Draw an MDP whose rows come from a symmetric Dirichlet distribution.

        Parameters
        ----------
        layers
            The number of states in each layer. If the first or the last layer has several states, a start or an end
            is added.
        actions
            The number of actions of every state.
        seed
            The same seed gives the same MDP.
        branching
            The number of possible successors of a pair; all states of the next layer by default.
        concentration
            The parameter of the Dirichlet distribution: small values make outcomes almost certain.

        Returns
        -------
        MDP
            The MDP drawn.

        Raises
        ------
        InputError
            If a number is out of range.
        """
        sizes = checked_sizes(layers)
        count = whole("actions", actions, 1)
        if not isinstance(concentration, int | float | np.number) or not 0.0 < concentration < np.inf:
            raise InputError("concentration", f"{concentration!r}", "a positive number")
        world = generator(seed, "world")
        if branching is None:
            skeleton = Skeleton.dense(sizes, count)
        else:
            skeleton = _branching_skeleton(sizes, count, whole("branching", branching, 1), world)
        return cls(skeleton, _dirichlet(skeleton, concentration, world))

    def sample(self, policy: ByName, rng: np.random.Generator) -> Trajectory:
        """Draw one episode.

        Parameters
        ----------
        policy
            Probabilities of actions, one for each pair.
        rng
            The generator; it supplies 2 L uniform numbers.

        Returns
        -------
        Trajectory
            States, pairs and transitions of the episode.
        """
        expect(np.random.Generator, rng, "rng")
        return self.sample_from(policy_vector(self.skeleton, policy), rng.random(2 * self.skeleton.num_steps))

    def sample_from(self, policy: FloatArray, uniforms: FloatArray) -> Trajectory:
        """Draw one episode with given uniform numbers.

        Parameters
        ----------
        policy
            A checked policy.
        uniforms
            2 L numbers in [0, 1).

        Returns
        -------
        Trajectory
            States, pairs and transitions of the episode.

        Raises
        ------
        InputError
            If ``policy`` is not a policy.
        """
        sk, out = self.skeleton, Trajectory.empty(self.skeleton.num_steps)
        bad = sample(self.dynamics, policy, uniforms, out.states, out.pairs, out.transitions)
        if bad >= 0:
            raise broken_policy(sk, policy, bad)
        return out

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild copies by the constructor, so that they are checked and read-only too."""
        return MDP, (self.skeleton, self.transition)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MDP):
            return NotImplemented
        return self.skeleton == other.skeleton and np.array_equal(self.transition, other.transition)

    def __hash__(self) -> int:
        return hash((self.skeleton, self.transition.tobytes()))

    def __repr__(self) -> str:
        return repr(self.skeleton).replace("Skeleton", "MDP", 1)

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        return card("MDP", self.skeleton._sizes(), layers_svg(self.skeleton, self.transition))


def _initial(initial: ArrayLike | None, states: int) -> FloatArray | None:
    """The distribution over a first layer of several states; None if it has one state."""
    if initial is None:
        if states > 1:
            raise InputError("initial", f"nothing, but the first layer has {states} states", "their distribution")
        return None
    start = distribution(initial, "initial", states)
    return start if states > 1 else None


def _normalised(sk: Skeleton, rows: FloatArray) -> FloatArray:
    """A copy of ``rows`` in which each pair's part is checked to be a distribution and normalised."""
    if (bad := ~(rows >= 0.0)).any():
        i = int(np.argmax(bad))
        raise no_probability(sk.where_transition(i), rows[i])
    totals: FloatArray = np.add.reduceat(rows, sk.transition_ptr[:-1])
    if (bad := ~(np.abs(totals - 1.0) <= TOLERANCE)).any():
        p = int(np.argmax(bad))
        raise no_distribution(sk.where_pair(p), totals[p])
    # Deviations within the rounding of the sum stay, so that an MDP rebuilt from its rows is the same bit for bit.
    slack = np.finfo(float).eps * (np.diff(sk.transition_ptr) + 2)
    totals[np.abs(totals - 1.0) <= slack] = 1.0
    return rows / sk.over_transitions(totals) + 0.0  # no -0.0, which is equal to 0.0 but hashes differently


def _branching_skeleton(sizes: list[int], actions: int, branching: int, world: np.random.Generator) -> Skeleton:
    """Draw each pair's successors: one from each of ``branching`` equal ranges of the next layer."""
    table_rows: list[list[NDArray[np.int64]]] = []
    offset = 0
    for size, following in pairwise(sizes):
        width = min(branching, following)
        edges = np.arange(width + 1) * following // width
        shape = (size * actions, width)
        drawn = world.integers(np.broadcast_to(edges[:-1], shape), np.broadcast_to(edges[1:], shape))
        pair = np.repeat(np.arange(size * actions), width)
        table_rows.append([offset + pair // actions, pair % actions, offset + size + drawn.ravel()])
        offset += size
    return Skeleton.sparse(sizes, *(np.concatenate(column) for column in zip(*table_rows, strict=True)))


def _dirichlet(sk: Skeleton, concentration: float, world: np.random.Generator) -> FloatArray:
    """Draw rows from the symmetric Dirichlet distribution: normalised gamma draws, in logarithms.

    G of shape c is distributed as G' U^(1/c) with G' of shape c + 1; for small c only its logarithm fits a float64.
    """
    n = sk.num_transitions
    logs = np.log(world.standard_gamma(concentration + 1.0, n)) + np.log1p(-world.random(n)) / concentration
    first = sk.transition_ptr[:-1]
    tops: FloatArray = np.maximum.reduceat(logs, first)
    weights = np.exp(logs - sk.over_transitions(tops))
    totals: FloatArray = np.add.reduceat(weights, first)
    return weights / sk.over_transitions(totals)
