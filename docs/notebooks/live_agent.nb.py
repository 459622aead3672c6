# %% [markdown]
# # A live agent, step by step
#
# A van leaves the depot every day and must choose a road. Nobody knows how often each road is jammed, and costs change
# from day to day. This notebook lets an agent decide, hands it costs that come two days late, closes it and opens it
# again, and asks what another plan would have cost. It needs the extra `plot`.
#
# ## Describe what can happen
#
# One row for each possible step: state, action, next state. No probabilities.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import advmdp as am

sk = am.Skeleton.from_steps(
    [
        ("depot", "north", "clear"),
        ("depot", "north", "jammed"),
        ("depot", "south", "clear"),
        ("depot", "south", "jammed"),
        ("clear", "deliver", "done"),
        ("jammed", "wait", "done"),
        ("jammed", "detour", "done"),
    ]
)
sk

# %% [markdown]
# ## Open the agent
#
# An agent is a learner with a file. Every decision, outcome and cost goes into the file before a call returns.
# `units` is the range that one step can cost, here in minutes.

# %%
folder = Path(tempfile.mkdtemp())
agent = am.Agent.open(folder / "van.db", skeleton=sk, units=(0, 60), seed=7)
agent.policy()["depot"]

# %% [markdown]
# ## Let it decide for sixty days
#
# The next cell stands for the real world: jams are more frequent in the north, and waiting takes longer on Mondays.
# The agent sees only where each decision led. What every step would have cost arrives two days later.

# %%
rng = np.random.default_rng(0)


def minutes(day):
    return {
        ("depot", "north"): 15 + 5 * rng.random(),
        ("depot", "south"): 25 + 5 * rng.random(),
        ("clear", "deliver"): 5.0,
        ("jammed", "wait"): 55.0 if day % 7 == 0 else 30.0,
        ("jammed", "detour"): 40.0,
    }


paid, late = [], []
for day in range(60):
    costs, episode, total = minutes(day), agent.begin(), 0.0
    while not episode.done:
        choice = episode.act()
        total += costs[choice.state, choice.action]
        jam = rng.random() < (0.6 if choice.action == "north" else 0.1)
        episode.arrive(
            "done" if choice.state != "depot" else "jammed" if jam else "clear"
        )
    paid.append(total)
    late.append((episode.id, costs))
    if len(late) > 2:
        agent.tell(*late.pop(0))
    if day == 30:  # a restart: the file has everything
        agent.close()
        agent = am.Agent.open(folder / "van.db")
agent.status()

# %% [markdown]
# The restart on day 30 changed nothing, not a single bit. This is what the agent paid, day by day and on average:

# %%
fig, axis = plt.subplots(figsize=(8, 3.2), layout="constrained")
axis.plot(paid, ".", label="a day")
axis.plot(np.cumsum(paid) / np.arange(1, 61), label="mean so far")
axis.set(xlabel="day", ylabel="minutes", ylim=(0, None))
axis.legend()
fig

# %% [markdown]
# ## Ask why
#
# For each action: its probability, the expected cost from here to the end with an interval, and how often it was tried.

# %%
agent.explain("depot")

# %% [markdown]
# ## Ask what another plan would have cost
#
# The log answers for any plan, with an interval that holds for all plans at once with probability 0.95.

# %%
for name, plan in {
    "always north, wait": {"depot": "north", "jammed": "wait"},
    "always south, detour": {"depot": "south", "jammed": "detour"},
}.items():
    print(f"{name:22} {am.evaluate(agent, plan)}")

# %% [markdown]
# `agent.report("van.html")` writes all of this, with shadow baselines and alarms, as a page. [In a running
# system](../live.md) explains late, missing and contradictory outcomes, and what is guaranteed.

# %%
agent.report(
    folder / "van.html", {"always south": {"depot": "south", "jammed": "detour"}}
).name
