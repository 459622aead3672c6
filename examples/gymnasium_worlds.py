"""Compare another library's agent with our learners: OpenSpiel's Q-learner and UC-O-REPS on Gymnasium's FrozenLake.

    python examples/gymnasium_worlds.py                     5 seeds of 2,000 episodes: about a minute of one core
    python examples/gymnasium_worlds.py --env CliffWalking-v1 --steps 14
    python examples/gymnasium_worlds.py --seeds 2 --episodes 200 --out /tmp/gymnasium.png

The dynamics are those of the environment, unrolled for --steps steps.  Losses are

    its own         the environment's rewards, the same in every episode
    alternating     in every state one action is good in even episodes, and another in odd ones
    reacting        higher for what the player did in the previous episode

The last two apply to moves only: after falling into a hole each remaining step costs 1, after the goal 0.

The Q-learner (pip install open_spiel) plays a Gymnasium environment and sees the reward of each step it takes, like
UOB-REPS.  UC-O-REPS sees the whole loss after an episode.  No player knows the dynamics.

The first table shows what each player paid, the second its regret.  Both are exact: they count the expected losses of
each episode's policy.  Reacting losses differ between players: each meets the losses that it provoked, and its regret
compares it with the best fixed policy on these.  So compare players by what they paid.
"""

import argparse
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import advmdp as am
from advmdp.experiments.results import Results
from advmdp.integrations.gymnasium import Account, AdversarialEnv, TabularModel, tabular_model
from advmdp.scenarios.comparing import count, example, paper, part, picture
from advmdp.scenarios.comparing import shown as shown_as

try:
    from open_spiel.python.algorithms.tabular_qlearner import QLearner
    from open_spiel.python.rl_environment import StepType, TimeStep
    from open_spiel.python.rl_tools import ConstantSchedule
except ImportError:
    raise SystemExit("this example needs OpenSpiel: pip install open_spiel") from None

WORLDS = ("its own", "alternating", "reacting")
AGENT = "Q-learning (OpenSpiel)"


class Player:
    """Connects OpenSpiel's agent to a Gymnasium environment, and tracks its policy."""

    def __init__(self, mdp: am.MDP, losses: am.losses.Losses, seed: int, epsilon: float, step_size: float) -> None:
        np.random.seed(seed)  # noqa: NPY002 (OpenSpiel uses the global generator)
        self.env = AdversarialEnv(mdp, losses, seed, policy=lambda: self.policy)
        actions, self.epsilon = mdp.skeleton.num_actions, epsilon
        self.agent = QLearner(0, actions, step_size, ConstantSchedule(epsilon))
        masks = self.env.action_masks
        self.policy = masks / np.maximum(1, masks.sum(axis=1, keepdims=True))

    def episode(self) -> None:
        state, info = self.env.reset()
        reward, over, seen = 0.0, False, {}
        while not over:
            seen[state] = info["action_mask"]
            kind = StepType.MID if len(seen) > 1 else StepType.FIRST
            action = self.agent.step(told(state, info["action_mask"], reward, kind)).action
            state, reward, over, _, info = self.env.step(action)
        self.agent.step(told(state, info["action_mask"], reward, StepType.LAST))
        for x, mask in seen.items():  # Q has changed only there
            greedy = self.agent.step(told(x, mask, 0.0, StepType.MID), is_evaluation=True).probs
            self.policy[x] = (1.0 - self.epsilon) * greedy + self.epsilon * mask / mask.sum()


def told(state: int, mask: np.ndarray, reward: float, kind: StepType) -> TimeStep:
    """A step in OpenSpiel's format, for its one player."""
    seen = {"info_state": [state], "legal_actions": [np.flatnonzero(mask).tolist()]}
    return TimeStep(seen, [reward], [1.0], kind)


def sequences(model: TabularModel, seed: int) -> dict[str, am.losses.Losses]:
    sk = model.mdp.skeleton
    alternating = model.priced(am.losses.Switching(sk, period=1, seed=seed))
    reacting = model.priced(am.losses.Adaptive(sk, seed=seed, strength=0.8))
    return dict(zip(WORLDS, (model.losses, alternating, reacting), strict=True))


def learners(sk: am.Skeleton, episodes: int, theory: bool = False) -> dict[str, am.Learner]:
    """Our learners, with practical parameters for all losses: larger steps and smaller sets than the theory's."""
    if theory:
        return {"UC-O-REPS": am.UCOREPS(sk, episodes), "UOB-REPS": am.UOBREPS(sk, episodes), "Uniform": am.Uniform(sk)}
    L, pairs = sk.num_steps, sk.num_states * sk.num_actions
    bandit = float(np.sqrt(L * np.log(L * pairs / 0.05) / (episodes * pairs)))
    eta = am.bounds.eta(sk, episodes)
    return {
        "UC-O-REPS": am.UCOREPS(sk, episodes, eta=10 * eta, confidence_scale=0.1, successors="possible"),
        "UOB-REPS": am.UOBREPS(sk, episodes, eta=3 * bandit, confidence_scale=0.01),
        "Uniform": am.Uniform(sk),
    }


Games = dict[str, dict[str, list[am.Game | Account]]]


def games(
    model: TabularModel,
    episodes: int,
    seeds: int,
    epsilon: float,
    step_size: float,
    console: Console,
    theory: bool = False,
) -> Games:
    """A game for each seed, by kind of losses and player."""
    found: Games = {world: {} for world in WORLDS}
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("playing", total=seeds * len(WORLDS) * episodes)
        for seed in range(1, seeds + 1):
            for world, losses in sequences(model, seed).items():
                for name, learner in learners(model.mdp.skeleton, episodes, theory).items():
                    game = am.play(model.mdp, losses, learner, episodes, seed)
                    found[world].setdefault(name, []).append(game)
                player = Player(model.mdp, losses, seed, epsilon, step_size)
                for _ in range(episodes):
                    player.episode()
                    bar.advance(task)
                found[world].setdefault(AGENT, []).append(player.env.account())
    return found


def table(found: Games, title: str, of: Callable[[am.Game | Account], float], digits: int, best: str = "") -> Table:
    """Tabulate means over seeds and standard errors, the least of each column in green; ``best`` adds a last row."""
    shown = Table(title=title)
    shown.add_column("player", no_wrap=True)
    last = {(w, name): np.array([of(g) for g in rows]) for w in found for name, rows in found[w].items()}
    for world in found:
        shown.add_column(world, justify="right", no_wrap=True)
    for name in next(iter(found.values())):
        cells = []
        for world in found:
            values = last[world, name]
            text = shown_as(values, digits)
            least = min(last[world, other].mean() for other in found[world])
            alike = bool(best) or world != "reacting"  # regrets about different losses are not compared
            cells.append(f"[green]{text}[/]" if alike and values.mean() == least else text)
        shown.add_row(name, *cells)
    if best:
        shown.add_section()
        shown.add_row(best, *(fixed(rows, digits) for rows in found.values()))
    return shown


def fixed(players: dict[str, list[am.Game | Account]], digits: int) -> str:
    """What the best fixed policy pays per episode, from the lowest to the highest mean if players met other losses."""
    means = [
        np.mean([g.units.cost(g.comparator.value, g.episodes) / g.episodes for g in some]) for some in players.values()
    ]
    return " to ".join(dict.fromkeys(f"{end:,.{digits}f}" for end in (min(means), max(means))))


def figure(found: Games, env: str, out: Path) -> None:
    """Draw what was paid, and below it the regret."""
    drawn, axes = plt.subplots(2, len(found), figsize=(11, 6.4), layout="constrained")
    for (top, bottom), (world, rows) in zip(axes.T, found.items(), strict=True):
        results = Results.of_games(rows, env, world)
        am.plot.paid(results, top, each=True, zoom=False)
        am.plot.regret(results, bottom, slope=False)
        for ax in (top, bottom):
            ax.set_title(f"{env}, losses: {world}", fontsize="medium", loc="left")
            ax.yaxis.label.set_size("small")
            ax.get_legend().remove()
    lines, names = axes[0, 0].get_legend_handles_labels()
    drawn.legend(lines, names, loc="outside lower center", ncols=len(names), frameon=False)
    drawing = BytesIO()
    drawn.savefig(drawing, dpi=110)
    plt.close(drawn)
    Image.open(drawing).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(out, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="FrozenLake-v1", help="the id of a Gymnasium environment with a table P")
    parser.add_argument("--steps", type=int, default=10, help="steps per episode (10)")
    parser.add_argument("--episodes", type=count, default=2000, help="episodes per game (2000)")
    parser.add_argument("--seeds", type=count, default=5, help="games per player (5)")
    parser.add_argument("--epsilon", type=part, default=0.1, help="exploration probability of the Q-learner (0.1)")
    parser.add_argument("--step-size", type=part, default=0.3, help="step size of the Q-learner (0.3)")
    parser.add_argument("--theory", action="store_true", help="use the theory's parameters for our learners")
    parser.add_argument("--out", type=picture, help="a file for the figure")
    arguments = parser.parse_args()
    console = paper()
    try:
        model = tabular_model(arguments.env, arguments.steps)
        played = arguments.episodes, arguments.seeds, arguments.epsilon, arguments.step_size
        found = games(model, *played, console, arguments.theory)
    except am.InputError as error:
        parser.error(str(error))
    length = f"{arguments.seeds} seeds of {arguments.episodes:,} episodes"
    title = f"{arguments.env}: paid per episode, {length}"
    console.print(table(found, title, lambda game: game.paid / game.episodes, 3, "best fixed policy"))
    console.print("Its own losses are paid in negative rewards.")
    title = f"{arguments.env}: regret, {length}"
    console.print(table(found, title, lambda game: game.units.scale * game.regret, 1))
    if arguments.out is not None:
        figure(found, arguments.env, arguments.out)


if __name__ == "__main__":
    example(main)
