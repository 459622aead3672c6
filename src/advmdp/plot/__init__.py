"""Figures for papers, in matplotlib.  Each function draws into ``ax`` (or a new one) and returns it.

    paid      what was paid above the learner that paid least, or per episode, zoomed in on the best
    regret    curves of regret with their bands, with sqrt(T) and the learner's bound for comparison
    parts     R^APP and R^ON, the costs of not knowing the dynamics and of not knowing the losses
    epochs    how many epochs have begun
    radii     how the confidence radii shrink; pair_radii shows the current radii of a learner
    weights   the weights of SelfTuning's experts over the episodes
    flow      an occupancy measure as flow through the layers

All but pair_radii and flow take :class:`advmdp.Results` of a single setting.  To select one, use
``results.only(losses="adaptive", horizon=1000)``.
"""

from advmdp.plot.curves import epochs, paid, pair_radii, parts, radii, regret
from advmdp.plot.flows import flow
from advmdp.plot.shares import weights

__all__ = ["epochs", "flow", "paid", "pair_radii", "parts", "radii", "regret", "weights"]
