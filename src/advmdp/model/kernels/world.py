"""A skeleton and, if known, its transition probabilities, in the form that the kernels read."""

import cython
from cython.cimports.advmdp.core.kernels.types import indices_of, ints_of, reals_of


class Dynamics:
    """The arrays of a skeleton, and P over transitions, or None if it is unknown."""

    def __init__(self, skeleton, transition=None):
        self.skeleton, self.transition = skeleton, transition
        view = cython.address(self.view)
        view.steps, view.states = skeleton.num_steps, skeleton.num_states
        view.pairs, view.transitions = skeleton.num_pairs, skeleton.num_transitions
        view.layer_ptr, view.pair_ptr = ints_of(skeleton.layer_ptr), ints_of(skeleton.pair_ptr)
        view.transition_ptr = ints_of(skeleton.transition_ptr)
        view.layer_transition_ptr = ints_of(skeleton.layer_transition_ptr)
        view.successor = indices_of(skeleton.successor)
        if transition is not None:
            view.transition = reals_of(transition)
