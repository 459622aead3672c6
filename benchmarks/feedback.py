"""Measures late and partial feedback: regret with delays, for steps that adapt to them and steps that do not; groups.

The adversary reacts to what the learner prefers. If losses come late and the step size ignores this, the learner
oscillates between extremes, and its regret is linear in T.
"""

import numpy as np
from rich.console import Console
from rich.table import Table

import advmdp as am
from advmdp.learners import bounds

T, DELAYS, TIMES = 3000, (0, 10, 100), 5.0


def main(console: Console) -> None:
    late(console)
    grouped(console)


def late(console: Console) -> None:
    """Regret by delay."""
    mdp = am.MDP.random(layers=[1, 3, 1], actions=3, seed=2)
    sk, losses = mdp.skeleton, am.losses.Adaptive(mdp.skeleton, strength=0.8, seed=1)
    eta = float(np.sqrt(bounds.entropy(sk) / T))
    table = Table("learner", *(f"delay {d}" for d in DELAYS), title=f"regret against losses that react, T = {T:,}")
    ignored = [careless(mdp, losses, T, TIMES * eta, delay) for delay in DELAYS]
    table.add_row(f"O-REPS, {TIMES:g} eta, delays ignored", *(f"{r:,.0f}" for r in ignored))
    learners = {
        f"OREPS, {TIMES:g} eta": lambda: am.OREPS(mdp, horizon=T, eta=TIMES * eta),
        "OREPS": lambda: am.OREPS(mdp, horizon=T),
        f"UCOREPS, {TIMES:g} eta": lambda: am.UCOREPS(sk, horizon=T, eta=TIMES * bounds.eta(sk, T)),
        "UCOREPS": lambda: am.UCOREPS(sk, horizon=T),
        "SelfTuning": lambda: am.SelfTuning(sk),
    }
    for name, make in learners.items():
        found = [am.play(mdp, losses, make(), episodes=T, delay=delay).regret for delay in DELAYS]
        table.add_row(name, *(f"{r:,.0f}" for r in found))
    guaranteed = []
    for delay in DELAYS:
        learner = am.OREPS(mdp, horizon=T)
        am.play(mdp, losses, learner, episodes=T, delay=delay)
        guaranteed.append(learner.bound(T))
    table.add_row("OREPS: bound", *(f"{b:,.0f}" for b in guaranteed))
    table.add_row("L T", *(f"{bounds.trivial(sk, T):,.0f}" for _ in DELAYS))
    console.print(table)


def careless(mdp: am.MDP, losses: am.losses.Losses, episodes: int, eta: float, delay: int) -> float:
    """The regret of O-REPS with one step size for all losses, whatever their delay."""
    sk, rows = mdp.skeleton, am.Point(mdp.transition)
    start = np.log(mdp.transition) - np.repeat(np.log(np.diff(sk.layer_pair_ptr)), np.diff(sk.layer_transition_ptr))
    now, policies, told, paid = am.project(sk, start, rows), {}, [], 0.0
    for t in range(episodes):
        told.append(losses.at(t, policies))
        policies[t] = now.policy
        paid += float(now.q @ told[t])
        if t >= delay:
            now = am.project(sk, now.log_q - eta * told[t - delay], rows)
    return paid - am.best_response(mdp, np.sum(told, axis=0))[1]


def grouped(console: Console) -> None:
    """Regret by feedback."""
    mdp = am.MDP.random(layers=[1, 4, 4, 1], actions=4, seed=1)
    sk, losses = mdp.skeleton, am.losses.Stochastic(mdp.skeleton, seed=2)
    state = np.repeat(sk.state_of_pair, np.diff(sk.transition_ptr))
    seen = {"its path": None, "all actions of the states on it": state, "everything": np.zeros_like(state)}
    table = Table("UOBREPS sees", "regret", title=f"stochastic losses, T = {T:,}, radii x 0.1")
    for name, groups in seen.items():
        learner = am.UOBREPS(sk, horizon=T, groups=groups, confidence_scale=0.1)
        table.add_row(name, f"{am.play(mdp, losses, learner, episodes=T).regret:,.0f}")
    console.print(table)
