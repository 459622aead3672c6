"""Figures for papers, in matplotlib.  Each function draws into ``ax`` (or a new one) and returns it.

    paid      what was paid above the learner that paid least, or an episode, zoomed in on the best
    regret    curves of regret with their bands, beside sqrt(T) and the learner's bound
    parts     R^APP and R^ON, what not knowing the dynamics and not knowing the losses cost
    epochs    how many epochs have begun
    radii     how the confidence radii shrink; pair_radii shows those of a learner as it stands
    weights   the weights of SelfTuning's experts over the episodes
    flow      an occupancy measure as flow through the layers

All but pair_radii and flow take :class:`advmdp.Results` of one setting, which ``results.only(losses="adaptive",
horizon=1000)`` gives.
"""

from advmdp.plot.curves import epochs, paid, pair_radii, parts, radii, regret
from advmdp.plot.flows import flow
from advmdp.plot.shares import weights

__all__ = ["epochs", "flow", "paid", "pair_radii", "parts", "radii", "regret", "weights"]
