"""Random interleavings of episodes and late, repeated, reordered and missing outcomes, against a simple model.

The model knows the rules of docs/live.md and nothing of the agent: it keeps lists and dictionaries, and drives a
learner of its own.  After every interleaving the agent must agree with it; after every fifth, so must an agent that is
rebuilt from the log alone.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest

import advmdp as am
from advmdp.live.opening import rebuilt

STEPS = [
    ("a", "l", "b"), ("a", "l", "c"), ("a", "r", "c"),
    ("b", "l", "d"), ("b", "r", "d"), ("b", "r", "e"), ("c", "go", "e"),
    ("d", "l", "z"), ("d", "r", "z"), ("e", "go", "z"),
]  # fmt: skip
SK = am.Skeleton.from_steps(STEPS)
LAYER = {"a": 0, "b": 1, "c": 1, "d": 2, "e": 2, "z": 3}
LOW, HIGH = -5.0, 15.0
pytestmark = pytest.mark.filterwarnings("ignore:the cost .* is outside the units")


@dataclass
class Ride:
    """An episode, as the model sees it."""

    handle: int | None
    policy: np.ndarray
    states: list = field(default_factory=lambda: ["a"])
    actions: list = field(default_factory=list)
    costs: dict = field(default_factory=dict)
    told: dict | None = None
    over: bool = False
    dropped: bool = False

    @property
    def path(self) -> list[tuple]:
        return list(zip(self.states, self.actions, self.states[1:], strict=False))


class Model:
    """The rules, in lists and dictionaries."""

    def __init__(self, learner: am.Learner, patience: int, missing: object) -> None:
        self.learner, self.patience, self.missing = learner, patience, missing
        self.rides: dict[int, Ride] = {}
        self.total = self.observed = self.late = self.learned = self.clipped = 0
        self.last: dict = {}
        self.seen = dict.fromkeys(STEPS, 0)

    def begin(self) -> int:
        for number, ride in self.rides.items():
            if number <= self.total - self.patience:
                self.finish(ride)
                if ride.handle is not None:
                    self.drop(ride)
        handle = self.learner.begin()
        self.rides[self.total] = Ride(handle, self.learner.policy)
        self.total += 1
        return self.total - 1

    def drop(self, ride: Ride) -> None:
        self.learner.drop(ride.handle)
        ride.handle, ride.dropped = None, True

    def finish(self, ride: Ride) -> None:
        if not ride.over:
            ride.over = True
            self.count(ride.path)
            self.learn_costs(ride)

    def count(self, path: list[tuple]) -> None:
        for step in path:
            self.seen[step] += 1
        if path:
            self.learner.count([STEPS.index(step) for step in path])

    def cost(self, ride: Ride, step: int, cost: float) -> None:
        self.clipped += not LOW <= cost <= HIGH
        ride.costs[step] = cost
        self.learn_costs(ride)

    def learn_costs(self, ride: Ride) -> None:
        if self.learner.feedback != "bandit" or not ride.over or ride.handle is None:
            return
        if not ride.path:
            self.drop(ride)
        elif set(range(len(ride.path))) <= set(ride.costs):
            losses = [self.scaled(ride.costs[k]) for k in range(len(ride.path))]
            self.learner.learn(losses, ride.handle, [STEPS.index(step) for step in ride.path])
            ride.handle = None
            self.learned += 1

    def tell(self, ride: Ride, loss: dict) -> None:
        ride.told = loss
        self.clipped += sum(not LOW <= cost <= HIGH for cost in loss.values())
        filled = {step: loss.get(step, self.fallback(step)) for step in STEPS}
        self.last |= loss
        if ride.handle is None:
            self.late += 1
            return
        self.learner.learn([self.scaled(filled[step]) for step in STEPS], ride.handle)
        ride.handle = None
        self.learned += 1

    def fallback(self, step: tuple) -> float | None:
        return self.last.get(step) if self.missing == "carry" else self.missing

    def can_fill(self, loss: dict) -> bool:
        return self.missing != "error" and all(step in loss or self.fallback(step) is not None for step in STEPS)

    def scaled(self, cost: float) -> float:
        return min(1.0, max(0.0, (cost - LOW) / (HIGH - LOW)))

    def paid(self) -> float:
        total = 0.0
        for ride in self.rides.values():
            total += sum(ride.costs.values())
            by_loss = {k: (ride.told or {}).get(step, 0.0) for k, step in enumerate(ride.path)}
            total += sum(cost for k, cost in by_loss.items() if k not in ride.costs)
        return total


class Player:
    """Does the same to the agent and to the model, at random, and compares."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        name = str(rng.choice(["UCOREPS", "UOBREPS", "SelfTuning"], p=[0.47, 0.47, 0.06]))
        parameters = {"horizon": 50} if name == "UOBREPS" else {}
        missing = [0.5, "carry", "error"][rng.integers(3)]
        patience = int(rng.integers(1, 8))
        self.agent = am.Agent.open(
            ":memory:", skeleton=SK, learner=name, units=(LOW, HIGH), seed=int(rng.integers(100)), missing=missing,
            patience=patience, **parameters,
        )  # fmt: skip
        self.model = Model(am.make_learner(name, SK, **parameters), patience, missing)
        self.bandit = name == "UOBREPS"
        self.observed: dict[str, tuple] = {}
        self.begun: dict[str, int] = {}

    def some(self) -> tuple[int, Ride, am.Episode]:
        if not self.model.rides:
            self.begin()
        number = int(self.rng.choice(list(self.model.rides)))
        return number, self.model.rides[number], self.agent.episode(number)

    def some_cost(self) -> float:
        return float(self.rng.integers(-8, 20))

    def begin(self) -> None:
        name = f"id {self.rng.integers(4)}" if self.rng.random() < 0.3 else None
        if name in self.begun:
            assert self.agent.begin(event_id=name).id == self.begun[name]
            return
        episode, number = self.agent.begin(event_id=name), self.model.begin()
        assert episode.id == number
        if name is not None:
            self.begun[name] = number

    def act(self) -> None:
        _, ride, episode = self.some()
        if ride.over:
            with pytest.raises(am.InputError, match="it has ended"):
                episode.act()
            return
        choice, state = episode.act(), ride.states[-1]
        assert choice == episode.act()
        assert (choice.state, choice.step) == (state, LAYER[state])
        x = SK.state(state)
        assert list(choice.probabilities.values()) == ride.policy[SK.pair_ptr[x] : SK.pair_ptr[x + 1]].tolist()
        assert choice.probability == choice.probabilities[choice.action] > 0.0

    def arrive(self) -> None:
        _, ride, episode = self.some()
        state, cost = str(self.rng.choice(list(LAYER))), None
        if 0 <= (step := LAYER[state] - 1) < len(ride.path):  # about the past
            if ride.states[step + 1] == state:
                episode.arrive(state)
            else:
                with pytest.raises(am.ConflictError):
                    episode.arrive(state)
            return
        if ride.over:
            with pytest.raises(am.InputError, match="it has ended"):
                episode.arrive(state)
            return
        action, step = episode.act().action, len(ride.path)
        if (ride.states[-1], action, state) not in STEPS:
            with pytest.raises(am.InputError, match="an arrival in"):
                episode.arrive(state)
            state = str(self.rng.choice([y for x, a, y in STEPS if (x, a) == (ride.states[-1], action)]))
        if self.rng.random() < 0.4 and step not in ride.costs:
            cost = self.some_cost()
        episode.arrive(state, cost)
        ride.states.append(state)
        ride.actions.append(action)
        if cost is not None:
            self.model.cost(ride, step, cost)
        if state == "z":
            self.model.finish(ride)

    def cost(self) -> None:
        _, ride, episode = self.some()
        cost, at = self.some_cost(), None if self.rng.random() < 0.5 else str(self.rng.choice(list(LAYER)))
        step = len(ride.path) - 1 if at is None else LAYER[at]
        decided = len(ride.path) + (not ride.over)
        if not 0 <= step < decided or (at is not None and ride.states[step] != at):
            with pytest.raises(am.InputError):
                episode.cost(cost, at)
            return
        if step in ride.costs:
            episode.cost(ride.costs[step], at)
            if cost != ride.costs[step]:
                with pytest.raises(am.ConflictError):
                    episode.cost(cost, at)
            return
        episode.cost(cost, at)
        self.model.cost(ride, step, cost)

    def tell(self) -> None:
        number, ride, _ = self.some()
        whole = self.rng.random() < 0.6
        loss = {step: self.some_cost() for step in STEPS if whole or self.rng.random() < 0.7}
        if self.bandit:
            with pytest.raises(am.InputError, match="learner=SelfTuning or UCOREPS"):
                self.agent.tell(number, loss)
            return
        if ride.told is not None:
            self.agent.tell(number, dict(reversed(ride.told.items())))
            if loss != ride.told:
                with pytest.raises(am.ConflictError):
                    self.agent.tell(number, loss)
            return
        if len(loss) < len(STEPS) and not self.model.can_fill(loss):
            with pytest.raises(am.InputError, match="missing="):
                self.agent.tell(number, loss)
            return
        self.agent.tell(number, loss if self.rng.random() < 0.5 else [loss.get(step, np.nan) for step in STEPS])
        self.model.tell(ride, loss)

    def end(self) -> None:
        _, ride, episode = self.some()
        episode.end()
        self.model.finish(ride)

    def observe(self) -> None:
        states, actions = ["a"], []
        while states[-1] != "z" and self.rng.random() < 0.8:
            _, action, following = STEPS[self.rng.choice([i for i, step in enumerate(STEPS) if step[0] == states[-1]])]
            actions.append(action)
            states.append(following)
        name = f"id {self.rng.integers(4)}" if self.rng.random() < 0.6 else None
        if name in self.observed:
            number, *before = self.observed[name]
            if before == [states, actions]:
                assert self.agent.observe(states, actions, event_id=name) == number
            else:
                with pytest.raises(am.ConflictError):
                    self.agent.observe(states, actions, event_id=name)
            return
        number = self.agent.observe(states, actions, event_id=name)
        assert number == self.model.total
        self.model.total += 1
        self.model.observed += 1
        self.model.count(list(zip(states, actions, states[1:], strict=False)))
        if name is not None:
            self.observed[name] = (number, states, actions)

    def play(self, moves: int) -> None:
        ways = (self.begin, self.act, self.arrive, self.cost, self.tell, self.end, self.observe)
        for way in self.rng.choice(len(ways), moves, p=[0.18, 0.08, 0.36, 0.15, 0.16, 0.03, 0.04]):
            ways[way]()

    def compare(self) -> None:
        model, agent, rides = self.model, self.agent, self.model.rides.values()
        found, status = agent.learner.state(), agent.status()
        expected = model.learner.state()
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[name], array) for name, array in expected.items())
        assert (found["seen"] + found["new_seen"]).tolist() == list(model.seen.values())
        reached = sum(ride.states[-1] == "z" for ride in rides)
        assert (status.begun, status.finished, status.observed) == (len(rides), reached, model.observed)
        assert status.unfinished == sum(ride.over for ride in rides) - reached
        assert status.running == sum(not ride.over for ride in rides)
        assert (status.told, status.late, status.clipped) == (model.learned, model.late, model.clipped)
        assert status.dropped == sum(ride.dropped for ride in rides)
        assert status.outstanding == sum(ride.handle is not None for ride in rides)
        assert status.paid == model.paid()  # whole numbers, so exact in any order

    def compare_log(self) -> None:
        model, agent = self.model, self.agent
        state, _ = rebuilt(agent.log)
        assert state.dump() == agent.state_bytes()
        for logged in am.History.read(agent).episodes():
            if not logged.observed:
                ride = model.rides[logged.id]
                assert [STEPS[step.transition] for step in logged.steps if step.transition is not None] == ride.path
                assert {k: step.cost for k, step in enumerate(logged.steps) if step.cost is not None} == ride.costs
                assert (logged.loss is None) == (ride.told is None)


def interleave(seeds: range) -> None:
    for seed in seeds:
        player = Player(seed)
        player.play(int(player.rng.integers(5, 30)))
        player.compare()
        if seed % 5 == 0:  # it takes as long as all the rest
            player.compare_log()
        player.agent.log.close()


def test_any_interleaving_leads_where_the_model_says() -> None:
    interleave(range(300))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6))
def test_ten_thousand_interleavings_lead_where_the_model_says(part: int) -> None:
    interleave(range(300 + 1617 * part, 300 + 1617 * (part + 1)))
