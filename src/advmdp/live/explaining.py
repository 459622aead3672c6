"""Explanations of a policy: the expected cost of each action, with an interval.

With l the mean of all losses learned, Q(x, a) is the value of the policy under the estimated rows Pbar(.|x, a), and its
interval the least and the greatest value over the confidence set, by extended backward induction
(:func:`advmdp.policy_interval`).  A transition of which no loss is known may cost anything within the units.

These are not the losses that the learner expects next.  Most experts of SelfTuning predict none: they are policies, and
what is mixed are their q.  So the mean is given, which says the same for every learner, and is called that.
"""

import numpy as np

from advmdp.core.arrays import FloatArray
from advmdp.core.errors import InputError
from advmdp.live.answers import Explanation
from advmdp.live.state import AgentState
from advmdp.model.by_name import Label, action_name
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import policy_values
from advmdp.planning.optimism import policy_interval


def explain(state: AgentState, at: Label) -> dict[Label, Explanation]:
    """Explain each action of a state."""
    sk, units, learner = state.world.skeleton, state.terms.units, state.learner
    x = sk.state(at)
    if x == sk.num_states - 1:
        raise InputError("state", f"{sk.state_label(x)}, the last state, where episodes end", "a state with actions")
    policy, known = learner.policy, state.loss_count > 0
    means = np.where(known, state.loss_sum / np.maximum(1, state.loss_count), 0.5)
    visits, estimate = _estimate(state)
    cost = policy_values(MDP(sk, estimate), policy, means).pair
    row_set = learner.row_set
    if row_set is None:
        low = high = cost
    else:
        low = policy_interval(sk, policy, np.where(known, means, 0.0), row_set)[0].pair
        high = policy_interval(sk, policy, np.where(known, means, 1.0), row_set)[1].pair
    left = sk.num_steps - state.world.layer_of[x]
    found = {}
    for p in range(int(sk.pair_ptr[x]), int(sk.pair_ptr[x + 1])):
        costs, least, most = (float(units.costs(value[p], left)) for value in (cost, low, high))
        found[action_name(sk, x, p)] = Explanation(float(policy[p]), costs, least, most, int(visits[p]))
    return found


def _estimate(state: AgentState) -> tuple[FloatArray, FloatArray]:
    """The visits of each pair, and the rows: the true ones if known, else the empirical ones, uniform if untried."""
    sk = state.world.skeleton
    seen = state.seen
    visits = np.add.reduceat(seen, sk.transition_ptr[:-1])
    if state.dynamics is not None:
        return visits, state.dynamics
    widths = sk.over_transitions(np.diff(sk.transition_ptr))
    total = sk.over_transitions(visits)
    return visits, np.where(total > 0, seen / np.maximum(1, total), 1.0 / widths)
