"""Show regret, policy regret, dynamic regret and equilibrium: one small game and one picture for each.

python examples/regret_kinds.py                          the numbers of docs/regret.md, in a few seconds
python examples/regret_kinds.py --out docs/figures       and its pictures
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import advmdp as am
from advmdp.scenarios.comparing import example

T = 2000
BLUE, RED, GREEN, GREY = "#0060b0", "#c04a00", "#00785a", "#55565a"
COLOURS = {"UCOREPS": BLUE, "ReplayLast": RED, "Uniform": GREEN}
WORLD = am.MDP.random([1, 4, 4, 1], 3, seed=0)
TWO_WAYS = am.MDP.from_steps([("home", "north", "work", 1.0), ("home", "south", "work", 1.0)])


def games(mdp: am.MDP, losses: am.losses.Losses, **more: Any) -> dict[str, am.Game]:
    sk = mdp.skeleton
    learners = (am.UCOREPS(sk, horizon=T, eta=0.1, confidence_scale=0.2), am.ReplayLast(sk), am.Uniform(sk))
    return {type(one).__name__: am.play(mdp, losses, one, T, seed=2, **more) for one in learners}


def axes(title: str, x: str, y: str) -> tuple[Figure, Any]:
    figure = Figure(figsize=(6.6, 3.2), dpi=110, layout="constrained")
    ax = figure.add_subplot()
    ax.set_title(title, fontsize=10, loc="left")
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)
    return figure, ax


def note(ax: Any, text: str, x: float, y: float, colour: str, up: float = 0.0) -> None:
    """Write a text to the right of a point."""
    ax.annotate(text, (x, y), (7, up), textcoords="offset points", va="center", color=colour)


def regret() -> Figure:
    """Losses that do not react: the same for all players."""
    played = games(WORLD, am.losses.Stochastic(WORLD.skeleton, seed=1))
    best = next(iter(played.values())).comparator.value
    print(f"1. Regret. Losses that do not react; the best fixed policy pays {best:,.1f}.")
    figure, ax = axes("Paid beyond the best fixed policy: the losses are the same for all", "episode", "regret")
    for name, game in played.items():
        print(f"   {name:<11} paid {game.total_loss:>8,.1f}   regret {game.regret:>6,.1f}")
        ax.plot(game.curve["episode"], game.curve["regret"], color=COLOURS[name], lw=2)
        note(
            ax, f"{name}, paid {game.total_loss:,.0f}", T, game.regret, COLOURS[name], 4 if name == "ReplayLast" else -4
        )
    ax.set_xlim(0, 1.42 * T)
    ax.set_ylim(bottom=-120)
    ax.set_xticks(range(0, T + 1, 500))
    return figure


def policy_regret() -> Figure:
    """Losses that react: each player is compared with policies on its own losses."""
    played = games(WORLD, am.losses.Adaptive(WORLD.skeleton, seed=1, strength=0.8))
    best = next(iter(played.values())).best_fixed_policy()
    print("\n2. Policy regret. Losses that react.")
    print(f"   a fixed policy pays {best.paid:,.1f} when they react to it, and none pays less than {best.lower:,.1f}")
    figure, ax = axes("The losses react: each hollow dot is the best policy on other losses", "paid", "")
    for y, (name, game) in enumerate(played.items()):
        provoked, against = game.comparator.value, game.policy_regret(best.policy).regret
        accounts = f"best on the losses it provoked {provoked:>8,.1f}   regret {game.regret:>7,.1f}"
        print(f"   {name:<11} paid {game.total_loss:>8,.1f}   {accounts}   policy regret {against:>6,.1f}")
        ax.plot([provoked, game.total_loss], [y, y], color=COLOURS[name], lw=2, alpha=0.4)
        ax.plot(provoked, y, "o", mfc="white", mec=COLOURS[name], ms=9)
        ax.plot(game.total_loss, y, "o", color=COLOURS[name], ms=9)
        note(ax, f"regret {game.regret:,.0f}", provoked, y, COLOURS[name], 11)
    ax.axvline(best.paid, color=GREY, lw=1.5, ls="--")
    note(ax, "the best fixed policy,\nwith losses that react to it", best.paid, 2.62, GREY)
    for label, fill in (("paid", GREY), ("the best fixed policy on the losses that it provoked", "white")):
        ax.plot([], [], "o", mfc=fill, mec=GREY, ms=9, label=label)
    ax.legend(loc="lower left", frameon=False, fontsize=9)
    ax.set_yticks(range(len(played)), played)
    ax.set_ylim(-0.9, 3.0)
    return figure


def dynamic_regret() -> Figure:
    """Losses that move: sequences of policies with a few switches."""
    most = 12
    played = games(WORLD, am.losses.Switching(WORLD.skeleton, period=T // 4, seed=1), switches=(3,))
    best = am.switching_comparator(WORLD, played["Uniform"].losses, T, most)
    paid = best.values[:, -1]
    print(f"\n3. Dynamic regret. The best fixed policy pays {paid[0]:,.1f}, the best with 3 switches {paid[3]:,.1f}.")
    figure, ax = axes("The more often a policy may switch, the less it pays", "switches allowed", "paid")
    ax.plot(paid, "o-", color=GREY, lw=1.5, ms=5, zorder=3)
    note(ax, "the best sequence of policies", 2, paid[2], GREY)
    for name, game in played.items():
        moving = game.curve["regret_switches_3"][-1]
        accounts = f"regret {game.regret:>8,.1f}   regret against 3 switches {moving:>7,.1f}"
        print(f"   {name:<11} paid {game.total_loss:>8,.1f}   {accounts}")
        ax.plot([0, most], [game.total_loss] * 2, color=COLOURS[name], lw=2)
        note(ax, name, most, game.total_loss, COLOURS[name])
    ax.set_xlim(0, 1.25 * most)
    ax.set_xticks(range(0, most + 1, 3))
    return figure


def equilibrium() -> Figure:
    """Two routes that cost more if they are used more: where a learner settles, and where it would pay least."""
    losses = am.losses.Adaptive(TWO_WAYS.skeleton, seed=17, strength=0.6, noise=0.0)
    game = am.play(TWO_WAYS, losses, am.UCOREPS(TWO_WAYS.skeleton, horizon=T, eta=0.05), T)
    best = game.best_fixed_policy()
    a, b = 0.4 * losses.base, 0.6
    settled, optimum = float(game.learner.policy[0]), float(best.policy[0])
    fair = float(np.clip(0.5 + (a[1] - a[0]) / (2.0 * b), 0.0, 1.0))
    north = np.linspace(0.0, 1.0, 201)
    ways = a[0] + b * north, a[1] + b * (1.0 - north)
    cost = north * ways[0] + (1.0 - north) * ways[1]
    at = [float(np.interp(p, north, cost)) for p in (fair, optimum)]
    print(f"\n4. Equilibrium. North costs {a[0]:.3f} + {b} q, south {a[1]:.3f} + {b} (1 - q), q the share of north.")
    print(f"   equilibrium q = {fair:.3f}, {at[0]:.4f} an episode;   optimum q = {optimum:.3f}, {at[1]:.4f} an episode")
    accounts = f"regret {game.regret:.1f}   policy regret {best.regret:.1f}   ends at q = {settled:.3f}"
    print(f"   UCOREPS paid {game.total_loss:,.1f}   {accounts}")
    title = "A learner settles where both ways cost the same, not where the mean is least"
    figure, ax = axes(title, "share of north, q", "cost an episode")
    for way, name, colour in ((ways[0], "north", GREEN), (ways[1], "south", RED)):
        ax.plot(north, way, color=colour, lw=1.5)
        note(ax, name, 1.0, way[-1], colour)
    ax.plot(north, cost, color=BLUE, lw=2.5)
    ax.annotate("mean", (0.2, float(cost[40])), (-8, -12), textcoords="offset points", ha="right", color=BLUE)
    for text, x, y, up in (("equilibrium", fair, at[0], 45), ("optimum", optimum, at[1], -55)):
        line = {"arrowstyle": "-", "color": GREY}
        ax.annotate(f"{text}, {y:.3f}", (x, y), (0, up), textcoords="offset points", ha="center", arrowprops=line)
        ax.plot(x, y, "o", color=BLUE, ms=8)
    ax.set_xlim(0.0, 1.0)
    return figure


PICTURES = {
    "regret": regret,
    "policy_regret": policy_regret,
    "dynamic_regret": dynamic_regret,
    "equilibrium": equilibrium,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="for the pictures, PNG")
    folder = parser.parse_args().out
    for name, draw in PICTURES.items():
        figure = draw()
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            figure.savefig(folder / f"{name}.png")


if __name__ == "__main__":
    example(main)
