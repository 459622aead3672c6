"""Episodes of Algorithm 1 in compiled code: one loop for every learner.

A :class:`Block` holds the losses and random numbers of some episodes, one per row, and records what each episode cost.
A :class:`Rule` is what a learner does. In each episode, :func:`enter` draws the trajectory and evaluates the policy
under the true P; then the rule sees the episode and learns from it.

    see      look at the episode and count it; True ends the epoch, and Python prepares the next before `learn`
    learn    change the policy; anything but GOES_ON stops the loop

An episode whose loss arrives late has been counted already. :meth:`Rule.observe` sees it with the arrays that the
learner stored for it; `learn` then uses the current arrays.

A bandit learner reads its losses only from :func:`reveal`.
"""

import cython
from cython.cimports.advmdp.core.kernels.types import counters_of, floats_of, reals_of
from cython.cimports.advmdp.criteria.kernels.terms import evaluate_terms, terms_of
from cython.cimports.advmdp.losses.kernels.reaction import Reaction, react
from cython.cimports.advmdp.model.kernels.evaluation import push_forward, sample_path
from cython.cimports.advmdp.model.kernels.world import Dynamics
from cython.cimports.libc.string import memset


class Block:
    """The episodes of a block; :func:`advmdp.learners.episode.make_block` makes the arrays.

    ``account`` is the table of the criterion that costs are measured by. With ``reaction``, it answers with the losses.
    """

    def __init__(self, arrays, account, reaction=None):
        self.arrays, self.account, self.reaction = arrays, account, reaction
        view = cython.address(self.view)
        view.count, view.transitions, view.dimensions = arrays["losses"].shape
        view.steps, view.given = arrays["pairs"].shape[1], len(arrays["uniforms"]) == 0
        view.losses, view.uniforms = reals_of(arrays["losses"].ravel()), reals_of(arrays["uniforms"].ravel())
        view.states, view.pairs = counters_of(arrays["states"].ravel()), counters_of(arrays["pairs"].ravel())
        view.taken = counters_of(arrays["transitions"].ravel())
        view.paid, view.believed, view.gap = (
            floats_of(arrays["paid"]), floats_of(arrays["believed"]), floats_of(arrays["gap"])
        )  # fmt: skip
        view.total = floats_of(arrays["total"].ravel())
        view.q, view.mass, view.z = floats_of(arrays["q"]), floats_of(arrays["mass"]), floats_of(arrays["z"])
        view.seen, view.account = floats_of(arrays["seen"]), terms_of(account, view.steps)
        view.answer, view.late = cython.NULL, False
        if reaction is not None:
            answering: Reaction = reaction
            view.answer = cython.address(answering.view)

    def __len__(self):
        return self.view.count

    def __getattr__(self, name):
        """The arrays by name."""
        try:
            return self.arrays[name]
        except KeyError:
            raise AttributeError(name) from None


class Rule:
    """What a learner does after an episode. This base class does nothing: the policy stays the same."""

    def __init__(self, policy):
        self.policy = policy
        self.broken, self.told, self.coming, self.others, self.left = -1, 0, 1, 0, -1
        self.moved = False

    def see(self, world, block, b):
        return False

    def learn(self, world, block, b):
        return GOES_ON

    def place(
        self, told: cython.Py_ssize_t, coming: cython.Py_ssize_t, others: cython.Py_ssize_t, moved: cython.bint
    ) -> None:
        """Set the place of a block among all episodes.

        ``told`` is the number of its first episode, ``coming`` that of the episode which begins next, ``others`` the
        number of other open episodes. ``moved`` means that the set has changed since the policy was computed.
        """
        self.told, self.coming, self.others, self.moved = told, coming, others, moved

    def end_after(self, episodes: cython.Py_ssize_t) -> None:
        """End the epoch after that number of episodes at the latest."""
        self.left = episodes

    def observe(self, world: Dynamics, block: Block) -> None:
        """See the one episode of a block whose path has already been counted."""
        block.view.late = True
        place, episodes = cython.address(world.view), cython.address(block.view)
        with cython.nogil:
            self.see(place, episodes, 0)

    def play(self, world: Dynamics, block: Block, b: cython.Py_ssize_t, seen: cython.bint, episode: cython.Py_ssize_t):
        """Play episodes b, b + 1, ... of the block; ``seen`` means that episode b only awaits its `learn`.

        ``episode`` is the number of episodes learned from before the block. Returns the episode at which it stopped
        and the reason: GOES_ON at the end of the block.
        """
        place, episodes = cython.address(world.view), cython.address(block.view)
        status: cython.int = GOES_ON
        self.episode = episode
        with cython.nogil:
            while b < episodes.count:
                if not seen:
                    enter(place, episodes, b, cython.address(self.policy[0]))
                    over = self.see(place, episodes, b)
                    self.left -= 1
                    if over or self.left == 0:
                        status = NEW_EPOCH
                        break
                self.moved |= seen and not episodes.late  # a new epoch has a new set
                seen = False
                status = self.learn(place, episodes, b)
                self.moved = False
                if status != GOES_ON:
                    break
                b += 1
        return b, status


def enter(world, block, b, policy):
    """Draw the trajectory of episode b, evaluate the policy, add up the losses; do nothing if the episode is given."""
    if block.given:
        return
    states, pairs = block.states + b * (block.steps + 1), block.pairs + b * block.steps
    taken = block.taken + b * block.steps
    sample_path(world, policy, block.uniforms + 2 * b * block.steps, states, pairs, taken)
    push_forward(world, world.transition, policy, block.mass, block.q)
    if block.answer != cython.NULL:
        react(block.answer, b, policy, world.transition_ptr)
    loss = loss_of(block, b)
    block.paid[b] = evaluate_terms(
        cython.address(block.account), world.layer_transition_ptr, block.q, loss, block.dimensions, block.z
    )
    for i in range(block.transitions * block.dimensions):
        block.total[i] += loss[i]


def reveal(block, b):
    """The losses along the path of episode b, one per step: all that a bandit learner sees."""
    taken, loss = taken_of(block, b), loss_of(block, b)
    for k in range(block.steps):
        block.seen[k] = loss[taken[k] * block.dimensions] if taken[k] >= 0 else 0.0  # -1 marks a missing step
    return block.seen


def estimate(world, pairs, seen, chance, out):
    """Estimate losses by importance weighting: l^ = l / d on the pairs of the path, 0 elsewhere; d is ``chance[k]``.

    With d = q_t(x, a), the probability of the visit, E[l^(x, a)] = sum_{x'} P(x'|x, a) l(x, a, x'): the estimate is
    unbiased for the loss of a pair, and so is <q, l^> for every q of the same dynamics. With a larger d the estimate is
    biased downwards and varies less.
    """
    memset(out, 0, world.transitions * cython.sizeof(cython.double))
    for k in range(world.steps):
        if pairs[k] < 0:
            continue
        for i in range(world.transition_ptr[pairs[k]], world.transition_ptr[pairs[k] + 1]):
            out[i] = seen[k] / chance[k]


EPOCH_OVER = NEW_EPOCH
