"""Figures for papers, in matplotlib.  Each function draws into ``ax`` (or a new one) and returns it.

    regret    curves of an experiment with their bands, beside sqrt(T) and the learner's bound
    parts     R^APP and R^ON, what not knowing the dynamics and not knowing the losses cost
    epochs    how many epochs have begun
    radii     how the confidence radii shrink; pair_radii shows those of a learner as it stands
    flow      an occupancy measure as flow through the layers

The first four take :class:`advmdp.Results` of one setting: ``results.only(losses="adaptive", horizon=1000)``.
"""

from advmdp.plot.curves import epochs, pair_radii, parts, radii, regret
from advmdp.plot.flows import flow

__all__ = ["epochs", "flow", "pair_radii", "parts", "radii", "regret"]
