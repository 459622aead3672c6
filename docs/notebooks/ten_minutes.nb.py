# %% [markdown]
# # Ten minutes from nothing
#
# This notebook explains the parts of advmdp one by one: a world, losses, a policy, a learner, and the account of a
# game. It needs the extra `plot`.
#
# ## A world
#
# Every morning you go from home to work. Each row says what *can* happen: state, action, next state, and the
# probability.

# %%
import matplotlib.pyplot as plt
import numpy as np

import advmdp as am

mdp = am.MDP.from_steps(
    [
        ("home", "bus", "station", 0.8),
        ("home", "bus", "stuck", 0.2),
        ("home", "bike", "station", 0.95),
        ("home", "bike", "soaked", 0.05),
        ("station", "train", "work", 1.0),
        ("station", "taxi", "work", 1.0),
        ("stuck", "wait", "work", 1.0),
        ("stuck", "walk", "work", 1.0),
        ("soaked", "train", "work", 1.0),
        ("soaked", "taxi", "work", 1.0),
    ]
)
mdp

# %% [markdown]
# An *episode* is one morning: two steps, from left to right. A learner knows only the **skeleton**: states,
# actions and possible steps. It has to find out the probabilities.

# %%
sk = mdp.skeleton
sk

# %% [markdown]
# ## A policy and what it leads to
#
# A **policy** has a probability for each action in each state: a vector over pairs (state, action). Together with the
# world it determines how likely each step is. That is its **occupancy measure** $q$, a vector over transitions.

# %%
policy = am.uniform_policy(sk)
q = am.occupancy(mdp, policy)
am.policy_by_name(sk, policy)["home"]

# %%
fig, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
am.plot.flow(sk, q, ax=ax)
fig

# %% [markdown]
# ## Losses
#
# After each morning you know what every step *would* have cost: a **loss** $\ell_t$ between 0 and 1 for each
# transition. The expected cost of a policy is the sum $\langle q, \ell_t \rangle$ of probability times loss. Here
# losses depend on the day of the week, with noise around them.

# %%
losses = am.losses.Seasonal(sk, period=7, seed=4)
loss = losses.at(0)
print("expected cost of the first morning:", round(float(q @ loss), 3))
print("step by step:", am.expected_losses(sk, q, loss).round(3))

# %% [markdown]
# If you knew the loss beforehand, the best policy would be easy to find, by backward induction:

# %%
best, cost = am.best_response(mdp, loss)
print(
    round(cost, 3),
    {
        state: max(row, key=row.get)
        for state, row in am.policy_by_name(sk, best).items()
    },
)

# %% [markdown]
# ## Learning
#
# But you know neither the losses in advance nor the probabilities. A **learner** has a policy for the next episode,
# and learns from how the episode went. This is the whole loop:

# %%
learner = am.SelfTuning(sk)
rng = np.random.default_rng(0)
paid = []
for t in range(200):
    path = mdp.sample(learner.policy, rng)  # one morning
    paid.append(am.occupancy(mdp, learner.policy) @ losses.at(t))
    learner.update(path, losses.at(t))
print(
    "first 50 mornings:",
    round(float(np.mean(paid[:50])), 3),
    " last 50:",
    round(float(np.mean(paid[-50:])), 3),
)

# %% [markdown]
# `am.play` does the same much faster, and keeps the accounts. Compare the learner with the rules that come to mind first:

# %%
games = {}
for player in (
    am.SelfTuning(sk),
    am.ReplayLast(sk),
    am.FollowLeader(sk),
    am.Uniform(sk),
):
    game = am.play(mdp, losses, player, episodes=2000, seed=1)
    games[type(player).__name__] = [game]
    print(f"{type(player).__name__:12} paid {game.total_loss:,.0f}")
games["SelfTuning"][0]

# %% [markdown]
# **Regret** is a learner's excess cost over the best *fixed* policy, which is known only afterwards. Here it is
# negative: no fixed policy can follow the days of a week.

# %%
results = am.Results.of_games(games)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
am.plot.paid(results, left)
am.plot.weights(results, right, label="SelfTuning")
fig

# %% [markdown]
# On the right you see how it got there: SelfTuning mixes *experts*, each with its own idea of what the losses will
# be, and moves its weight to the one that pays off. The mean of the same day in past weeks wins.
#
# ## Next
#
# - [Use it in a running system](../howto/running_system.md): the same with your own world instead of `am.play`.
# - [Choose a learner](../howto/choose.md): when another learner is better.
# - [The paper's theorem made visible](theorem.nb.py): what can be proven.
