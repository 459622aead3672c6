"""Losses that react to the learner, computed for each episode of a block; see :class:`advmdp.losses.Adaptive`.

m_t(x, a) = (1 - strength) base(x, a) + strength p_t(x, a),     p_t the mean of the last policies before t
"""

import cython
from cython.cimports.advmdp.core.kernels.philox import WORDS, Words, counts_of, philox, stream_at
from cython.cimports.advmdp.losses.kernels.noise import noisy
from cython.cimports.libc.string import memcpy


class Reaction:
    """The data of an adaptive adversary for the B episodes of a block.

    ``base`` is (n, d).  ``before`` has the policies of the last episodes before the block, or the uniform one if there
    were none.  ``policies`` (B, pairs) records the policies of the block, and ``losses`` (B, n, d) its losses.
    """

    def __init__(self, base, strength, noise, key, start, before, played, memory, policies, losses):
        self.base, self.before, self.policies, self.losses = base, before, policies, losses
        view = cython.address(self.view)
        bases: cython.const[cython.double][:, ::1] = base
        past: cython.const[cython.double][:, ::1] = before
        current: cython.double[:, ::1] = policies
        answers: cython.double[:, :, ::1] = losses
        view.base, view.before = cython.address(bases[0, 0]), cython.address(past[0, 0])
        view.policies, view.losses = cython.address(current[0, 0]), cython.address(answers[0, 0, 0])
        view.strength, view.noise, view.stream = strength, noise, stream_at(key, start)
        view.kept, view.played, view.memory = past.shape[0], played, memory
        view.pairs, view.transitions, view.dimensions = current.shape[1], bases.shape[0], bases.shape[1]


def preference(answer, b, past, p):
    """p_t(x, a): the mean of the last ``past`` policies, or the uniform one if there are none."""
    if past == 0:
        return answer.before[p]
    total = 0.0
    for s in range(b - past, b):
        if s >= 0:
            total += answer.policies[s * answer.pairs + p]
        else:
            total += answer.before[(answer.kept + s) * answer.pairs + p]
    return total / past


def react(answer, b, policy, transition_ptr):
    """Write the loss of episode b of the block, then record its policy."""
    d = answer.dimensions
    past = min(answer.memory, answer.played + b)
    first = b * counts_of(answer.transitions * d)
    losses = answer.losses + b * answer.transitions * d
    words: Words = philox(cython.address(answer.stream), first)
    for p in range(answer.pairs):
        preferred = preference(answer, b, past, p)
        for k in range(transition_ptr[p] * d, transition_ptr[p + 1] * d):
            if k % WORDS == 0:
                words = philox(cython.address(answer.stream), first + k // WORDS)
            mean = (1.0 - answer.strength) * answer.base[k] + answer.strength * preferred
            losses[k] = noisy(mean, answer.noise, words.word[k % WORDS]) if answer.noise > 0.0 else mean
    memcpy(answer.policies + b * answer.pairs, policy, answer.pairs * cython.sizeof(cython.double))
