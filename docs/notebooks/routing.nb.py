# %% [markdown]
# # Routing without flapping, step by step
#
# Many senders share a network. Links get slower as more traffic uses them. If everyone takes the route that was
# fastest a moment ago, everyone moves at once, and back again: the routes *flap*. This notebook shows that, and what
# happens if every sender is a learner instead. It needs the extras `plot` and `routing`.
#
# ## A small network
#
# Four towns on a ring. Each demand can go either way around.

# %%
import matplotlib.pyplot as plt
import networkx as nx

import advmdp as am
from advmdp.scenarios.congestion import congestion_game
from advmdp.scenarios.congestion.routers import DelayRouting, Learners, shortest_by_hops

ring = nx.cycle_graph(["north", "east", "south", "west"])
for a, b, km in [
    ("north", "east", 120),
    ("east", "south", 80),
    ("south", "west", 90),
    ("west", "north", 95),
]:
    ring.edges[a, b]["length"] = km
ring.graph["demands"] = {
    "north": {"south": 5.0, "east": 2.0},
    "east": {"west": 4.0, "north": 2.0},
    "south": {"north": 3.0},
}
game = congestion_game(ring, load=0.8)
game.mdp

# %% [markdown]
# The world holds one small decision problem for each demand. An episode is one round: every demand sends its traffic,
# hop by hop, and then sees the delay of every link.
#
# ## Three ways to choose routes

# %%
rounds = 120
routers = {
    "SelfTuning": Learners(game, am.SelfTuning),
    "shortest, last delay": DelayRouting(game),
    "shortest, hops": shortest_by_hops(game),
}
course = game.play(routers, rounds, seed=1)
course.table().select("method", "delay", "peak", "changed")

# %% [markdown]
# `delay` is the mean delay in milliseconds, `peak` the load of the busiest link, and `changed` the share of traffic
# that takes another route than in the round before. The learners beat both the rule that follows every measurement
# and the rule that ignores them. Round by round:

# %%
fig, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for method in routers:
    rows = course.frame.filter(course.frame["method"] == method)
    axes[0].plot(rows["episode"], rows["delay"], label=method, lw=1.2)
    axes[1].plot(rows["episode"], rows["changed"], lw=1.2)
axes[0].set(title="mean delay [ms]", xlabel="round", yscale="log")
axes[1].set(title="share of traffic on a new route", xlabel="round", ylim=(0, 1))
axes[0].legend()
fig

# %% [markdown]
# The learners try both ways in the first rounds, and then settle: routes stay, and delays are low. Routing by the
# last delay never settles, because each measurement is out of date as soon as everybody has acted on it.
#
# ## Why it works
#
# To one sender, the delays that the others cause are just losses that change. No assumption about them is needed:
# each learner has little regret against *any* losses. If all senders have little regret, the traffic is close to an
# equilibrium, in which nobody gains by moving.
#
# [Routing that does not flap](../congestion.md) plays the same game on a real network with 121 demands, compares more
# rules, and says where a simple rule is better.
