"""Let an agent in a running system decide a commute: no simulator, costs in minutes, outcomes that come late.

    python examples/live_commute.py                     150 mornings, in a file that is deleted afterwards
    python examples/live_commute.py --db commute.db     in your own file; run it again to continue

Four people commute each morning, at the same time.  The minutes that every route would have taken are published a few
days later, or never.  After a while the agent is closed and reopened from its file; then a bicycle lane opens.
``City`` stands for the real world; the agent sees only what it would see of a real one.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

import advmdp as am
from advmdp.scenarios.comparing import count, example

STEPS = [
    ("home", "bus", "station"), ("home", "bus", "stuck"), ("home", "walk", "station"),
    ("station", "train", "work"), ("station", "taxi", "work"), ("stuck", "wait", "work"), ("stuck", "run", "work"),
]  # fmt: skip
LANE = [("home", "bike", "station")]
MINUTES = {
    ("home", "bus"): 12.0, ("home", "walk"): 25.0, ("home", "bike"): 11.0, ("station", "train"): 15.0,
    ("station", "taxi"): 28.0, ("stuck", "wait"): 55.0, ("stuck", "run"): 45.0,
}  # fmt: skip
TOGETHER = 4
"""The number of commuters who travel at the same time."""


class City:
    """The real world: unknown probabilities, and minutes that change."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.letters: list[tuple[int, list[int], dict[tuple[str, str], float]]] = []
        """Future publications: the day, the episodes, and the minutes."""

    def minutes(self, day: int, ways: list[tuple[str, str]]) -> dict[tuple[str, str], float]:
        """The minutes of every action on a day; every fifth day the trains are slow."""
        usual = MINUTES | ({("station", "train"): 45.0} if day % 5 == 0 else {})
        return {way: round(float(usual[way] + self.rng.normal(0.0, 3.0)), 1) for way in ways}

    def go(self, state: str, action: str) -> str:
        """Where an action leads."""
        if state == "home":
            return "stuck" if action == "bus" and self.rng.random() < 0.3 else "station"
        return "work"


def morning(agent: am.Agent, city: City, minutes: dict[tuple[str, str], float]) -> list[int]:
    """Move all commuters of a morning at the same time; return the ids of their episodes."""
    on_the_way = [agent.begin() for _ in range(TOGETHER)]
    ids = [episode.id for episode in on_the_way]
    while on_the_way:
        for episode in on_the_way:
            choice = episode.act()
            episode.arrive(city.go(choice.state, choice.action), cost=minutes[choice.state, choice.action])
        on_the_way = [episode for episode in on_the_way if not episode.done]
    return ids


def commute(agent: am.Agent, city: City, mornings: int) -> float:
    """Play some mornings and tell the agent what is published; return the mean minutes per ride."""
    before = agent.status()
    first = before.begun // TOGETHER
    ways = [(state, action) for state, actions in agent.policy().items() for action in actions]
    for day in range(first, first + mornings):
        minutes = city.minutes(day, ways)
        ids = morning(agent, city, minutes)
        if city.rng.random() < 0.9:  # else it is never published
            city.letters.append((day + int(city.rng.integers(1, 5)), ids, minutes))
        for letter in [letter for letter in city.letters if letter[0] <= day]:
            for id in letter[1]:
                agent.tell(id, letter[2])
            city.letters.remove(letter)
    after = agent.status()
    return (after.paid - before.paid) / (after.finished - before.finished)


def run(path: Path, mornings: int, seed: int) -> None:
    """Run the agent, reopen it, and extend its world."""
    city, world, part = City(seed), am.Skeleton.from_steps(STEPS), max(1, mornings // 5)
    with am.Agent.open(path, skeleton=world, learner="SelfTuning", units=(0, 90), seed=seed) as agent:
        print(f"the first {part} mornings    {commute(agent, city, part):.1f} minutes a ride")
        print(f"the next {part} mornings     {commute(agent, city, part):.1f} minutes a ride")
    with am.Agent.open(path) as agent:  # perhaps in another process; the file has everything
        status = agent.status()
        print(f"opened again            {status.told} losses learned, {status.outstanding} outstanding")
        agent.extend(LANE)
        left = max(1, mornings - 2 * part)
        print(f"{left} mornings with a lane  {commute(agent, city, left):.1f} minutes a ride")
        for action, why in agent.explain("home").items():
            cost = f"{why.cost:.0f} minutes to work, between {why.low:.0f} and {why.high:.0f}"
            print(f"  {action:5} {why.probability:4.0%}   {cost}; taken {why.visits} times")
        status = agent.status()
        print(f"paid {status.paid:,.1f} minutes in {status.finished} rides")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", type=Path, help="the agent's file, to keep")
    parser.add_argument("--mornings", type=count, default=150)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    try:
        if arguments.db is not None:
            run(arguments.db, arguments.mornings, arguments.seed)
            return
        with tempfile.TemporaryDirectory() as folder:
            run(Path(folder) / "commute.db", arguments.mornings, arguments.seed)
    except am.InputError as error:
        parser.error(str(error))


if __name__ == "__main__":
    example(main)
