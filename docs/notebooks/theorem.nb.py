# %% [markdown]
# # The paper's theorem made visible
#
# Rosenberg & Mansour (2019) prove that UC-O-REPS, which knows neither the dynamics nor the losses, has a regret of at
# most
#
# $$R_T \le 15\, F L |X| \sqrt{T |A| \ln \frac{T |X| |A|}{\delta}}$$
#
# with probability $1 - 2\delta$, against *any* sequence of losses (Theorem 5.1). This notebook plays the algorithm
# and shows each part of that statement: the confidence sets, the projection, the two parts of the regret, and the
# growth with $T$.

# %%
import matplotlib.pyplot as plt
import numpy as np

import advmdp as am

mdp = am.MDP.random(layers=[1, 3, 3, 1], actions=2, seed=1)
sk = mdp.skeleton
T = 5000
losses = am.losses.Drifting(sk, period=4000, noise=0.5, seed=2)
learner = am.UCOREPS(sk, horizon=T)
game = am.play(mdp, losses, learner, episodes=T, seed=3)
game

# %% [markdown]
# ## One step of the algorithm
#
# After each episode, UC-O-REPS moves away from the loss and projects back into the set $\Delta(M, i)$ of all
# occupancy measures that are plausible:
#
# $$q_{t+1} = \arg\min_{q \in \Delta(M, i)} \; \eta \langle q, \ell_t \rangle + D(q \,\|\, q_t)$$
#
# The projection comes with a certificate: its gap bounds how far the result is from the true minimum.

# %%
eta = am.bounds.eta(sk, T)
with np.errstate(divide="ignore"):
    step = am.project(sk, np.log(learner.q) - eta * losses.at(T), learner.row_set)
step

# %% [markdown]
# ## The confidence sets shrink
#
# The sets are balls around the estimated probabilities. Their radius, in $L_1$ norm, falls as pairs are visited. A
# radius of 2 or more, above the grey line, is no constraint. The paper's constants serve its proofs, so its sets stay
# vacuous for long. A set without constants ("pointwise") is much smaller, but no theorem covers it.

# %%
games = {"the paper's sets": [game]}
games["pointwise sets"] = [
    am.play(
        mdp,
        losses,
        am.UCOREPS(sk, horizon=T, confidence="pointwise"),
        episodes=T,
        seed=3,
    )
]
results = am.Results.of_games(games)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
am.plot.radii(results, left)
am.plot.epochs(results, right)
fig

# %% [markdown]
# ## The true world stays inside
#
# Lemma 4.1 says that the true probabilities lie in the sets with high probability. Here is how far they are from the
# centre, as a fraction of the radius, for each pair:

# %%
ball = learner.row_set
distance = np.add.reduceat(np.abs(ball.center - mdp.transition), sk.transition_ptr[:-1])
visited = np.add.reduceat(ball.center, sk.transition_ptr[:-1]) > 0
print(
    "largest distance / radius:",
    round(float((distance / ball.radius)[visited].max()), 3),
)

# %% [markdown]
# ## Two parts of the regret
#
# The proof splits the regret into $R^{APP}$, the price of not knowing the dynamics (Theorem 5.2), and $R^{ON}$, the
# price of not knowing the losses (Theorem 5.3). advmdp computes both exactly. The second may be negative: while the
# sets are wide, the algorithm is optimistic and expects a better world than the true one.

# %%
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
am.plot.parts(results, ax)
fig

# %% [markdown]
# ## The bound
#
# For $T = 5000$ the bound is far above the trivial $L\,T$, which no regret can exceed: it is *vacuous* at this
# horizon. The regret itself is small, and the part of Theorem 5.3, which does not depend on the size of the
# confidence sets, is not vacuous:

# %%
print(f"paid                {game.total_loss:12,.0f}")
print(f"regret              {game.regret:12,.0f}")
print(f"online part         {game.curve['regret_online'][-1]:12,.0f}")
print(f"Theorem 5.3         {am.bounds.online(sk, T):12,.0f}")
print(f"trivial bound L T   {am.bounds.trivial(sk, T):12,.0f}")
print(f"Theorem 5.1         {am.bounds.total(sk, T, 0.05):12,.0f}")

# %% [markdown]
# The theorem bounds the growth: $\sqrt{T}$, so that the regret per episode vanishes. At large $T$ the bound falls below
# the trivial one:

# %%
horizons = 10 ** np.arange(3, 11)
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.loglog(
    horizons, [am.bounds.total(sk, int(t), 0.05) for t in horizons], label="Theorem 5.1"
)
ax.loglog(
    horizons,
    [am.bounds.online(sk, int(t)) for t in horizons],
    label="Theorem 5.3, the online part",
)
ax.loglog(
    horizons,
    [am.bounds.trivial(sk, int(t)) for t in horizons],
    "--",
    color="grey",
    label="trivial, L T",
)
ax.set(xlabel="episodes T", title="where the bounds stop being vacuous")
ax.legend()
fig

# %% [markdown]
# `advmdp verify` checks every lemma and theorem of the paper on live runs, with a million episodes.
# [Errata](../errata.md) lists the places where the paper cannot be taken literally.
