"""Measures late and partial feedback: cost and regret with delays, for steps that adapt to them or do not; groups.

The adversary reacts to what the learner prefers.  If losses come late and the step size ignores this, the learner
oscillates between extremes, and its regret is linear in T.  Each learner meets the losses that it provoked, so what was
paid compares learners; the regret of each compares with the best fixed policy on its own losses, and with the bound.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import advmdp as am
from advmdp.learners import bounds

T, DELAYS, TIMES = 3000, (0, 10, 100), 5.0


class Played(NamedTuple):
    """What a game cost, and the bound on its regret, if any."""

    paid: float
    regret: float
    bound: float = np.inf


def main(console: Console) -> None:
    late(console)
    grouped(console)


def late(console: Console) -> None:
    """Cost, and then regret, by delay."""
    mdp, found = world(), delayed()
    shown = table("paid", {name: [f"{one.paid:,.0f}" for one in row] for name, row in found.items()})
    shown.add_row("every fixed policy, at least", *(f"{least_fixed():,.0f}" for _ in DELAYS))
    shown.add_row("L T", *(f"{bounds.trivial(mdp.skeleton, T):,.0f}" for _ in DELAYS))
    console.print(shown)
    shown = table("regret", {name: [f"{one.regret:,.0f}" for one in row] for name, row in found.items()})
    for name in ("OREPS", "UCOREPS"):
        shown.add_row(f"{name}: bound", *(f"{one.bound:,.0f}" for one in found[name]))
    console.print(shown)


def table(what: str, rows: Mapping[str, list[str]]) -> Table:
    """A row for each learner, and a column for each delay."""
    title = f"{what} against losses that react, T = {T:,}"
    shown = Table("learner", *(f"delay {d}" for d in DELAYS), title=title)
    for name, cells in rows.items():
        shown.add_row(name, *cells)
    return shown


def world() -> am.MDP:
    return am.MDP.random(layers=[1, 3, 1], actions=3, seed=2)


def adversary() -> am.losses.Losses:
    return am.losses.Adaptive(world().skeleton, strength=0.8, seed=1)


def least_fixed() -> float:
    """What any fixed policy pays at the least, with losses that react to it."""
    mdp = world()
    return am.play(mdp, adversary(), am.Uniform(mdp.skeleton), episodes=T).best_fixed_policy().lower


def delayed() -> dict[str, list[Played]]:
    """A game for each learner and delay, and for chance, which no delay affects."""
    mdp = world()
    sk, losses = mdp.skeleton, adversary()
    eta = float(np.sqrt(bounds.entropy(sk) / T))
    pairs = sk.num_states * sk.num_actions
    bandit = float(np.sqrt(sk.num_steps * np.log(sk.num_steps * pairs / 0.05) / (T * pairs)))
    found = {f"O-REPS, {TIMES:g} eta, delays ignored": [careless(mdp, losses, T, TIMES * eta, d) for d in DELAYS]}
    learners: dict[str, Callable[[], am.Learner]] = {
        f"OREPS, {TIMES:g} eta": lambda: am.OREPS(mdp, horizon=T, eta=TIMES * eta),
        "OREPS": lambda: am.OREPS(mdp, horizon=T),
        f"UCOREPS, {TIMES:g} eta": lambda: am.UCOREPS(sk, horizon=T, eta=TIMES * bounds.eta(sk, T)),
        "UCOREPS": lambda: am.UCOREPS(sk, horizon=T),
        f"UOBREPS, {TIMES:g} eta": lambda: am.UOBREPS(sk, horizon=T, eta=TIMES * bandit),
        "UOBREPS": lambda: am.UOBREPS(sk, horizon=T),
        "SelfTuning": lambda: am.SelfTuning(sk),
        "Uniform": lambda: am.Uniform(sk),
    }
    for name, make in learners.items():
        found[name] = [played(mdp, losses, make(), 0 if name == "Uniform" else delay) for delay in DELAYS]
    return found


def played(mdp: am.MDP, losses: am.losses.Losses, learner: am.Learner, delay: int) -> Played:
    game = am.play(mdp, losses, learner, episodes=T, delay=delay)
    return Played(game.total_loss, game.regret, learner.bound(T))


def careless(mdp: am.MDP, losses: am.losses.Losses, episodes: int, eta: float, delay: int) -> Played:
    """O-REPS with one step size for all losses, whatever their delay."""
    sk, rows = mdp.skeleton, am.Point(mdp.transition)
    start = np.log(mdp.transition) - np.repeat(np.log(np.diff(sk.layer_pair_ptr)), np.diff(sk.layer_transition_ptr))
    now, policies, told, paid = am.project(sk, start, rows), {}, [], 0.0
    for t in range(episodes):
        told.append(losses.at(t, policies))
        policies[t] = now.policy
        paid += float(now.q @ told[t])
        if t >= delay:
            now = am.project(sk, now.log_q - eta * told[t - delay], rows)
    return Played(paid, paid - am.best_response(mdp, np.sum(told, axis=0))[1])


def grouped(console: Console) -> None:
    """Cost and regret by feedback; these losses do not react."""
    mdp = am.MDP.random(layers=[1, 4, 4, 1], actions=4, seed=1)
    sk, losses = mdp.skeleton, am.losses.Stochastic(mdp.skeleton, seed=2)
    state = np.repeat(sk.state_of_pair, np.diff(sk.transition_ptr))
    seen = {"its path": None, "all actions of the states on it": state, "everything": np.zeros_like(state)}
    shown = Table("UOBREPS sees", "paid", "regret", title=f"stochastic losses, T = {T:,}, radii x 0.1")
    for name, groups in seen.items():
        learner = am.UOBREPS(sk, horizon=T, groups=groups, confidence_scale=0.1)
        game = am.play(mdp, losses, learner, episodes=T)
        shown.add_row(name, f"{game.total_loss:,.0f}", f"{game.regret:,.0f}")
    console.print(shown)
