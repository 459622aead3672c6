"""Kills an agent's process again and again: each life opens the agent, continues its work, and dies at a random moment.

    python -m tests.helpers.kills FOLDER LEARNER KILLS SEED

The work is a list of operations of a typical client: many rides at once, outcomes late and in any order, and sometimes
the world is extended.  A client repeats operations that were not acknowledged.  First an agent that is never killed
does all the work, and the digest of its state is recorded after each operation.  After each kill, the reopened agent
must have a recorded state: the one after all acknowledged operations, or after one more, which was done but not
acknowledged.  Half of the kills come from outside, at random times; the others come at the n-th passage of a place
inside a call.
"""

import hashlib
import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import advmdp as am
from advmdp.live import recording
from advmdp.live.log import Log
from advmdp.live.state import AgentState

STEPS = [
    ("a", "l", "b"), ("a", "l", "c"), ("a", "r", "c"), ("b", "l", "d"), ("b", "r", "d"), ("c", "go", "d"),
    ("c", "go", "e"), ("d", "l", "z"), ("d", "r", "z"), ("e", "go", "z"),
]  # fmt: skip
EXTENSIONS = [([("a", "m", "c")], []), ([("e", "fly", "z")], [("a", "m")]), ([("a", "m", "b")], [("b", "r")])]
LAYERS = "a", "bc", "de", "z"
Operation = tuple
PLACES = {
    "before the state changes": (AgentState, ("begin", "arrive", "cost", "tell", "end", "observe", "extend"), True),
    "after the state has changed": (AgentState, ("begin", "arrive", "cost", "tell", "end", "observe", "extend"), False),
    "before a commit": (Log, ("append",), True),
    "after a commit": (Log, ("append",), False),
    "before a snapshot": (Log, ("keep_snapshot",), True),
    "after a snapshot": (Log, ("keep_snapshot",), False),
    "while opening": (AgentState, ("replay",), True),
}
"""Places where a life may end, by name: before or after a method of a class."""
LONGEST = 8
"""The most operations in a life; then it ends between two calls."""


def operations(bandit: bool, rides: int, rng: np.random.Generator) -> list[Operation]:
    """The work, in the order of a typical client."""
    waiting: list[list[Operation]] = []
    for k in range(rides):
        steps = [(kind, k, s) for s in range(3) for kind in ("act", "arrive")][: 6 if rng.random() < 0.9 else 3]
        steps = [("begin", k), *steps, *([] if len(steps) == 6 else [("end", k)])]
        after: list[Operation] = [("cost", k, s) for s in range(sum(op[0] == "arrive" for op in steps))]
        after += [] if bandit else [("tell", k)]
        rng.shuffle(after)
        waiting.append(steps + [op for op in after if rng.random() < 0.9])
    found: list[Operation] = []
    open_ones: list[list[Operation]] = []
    while waiting or open_ones:
        if waiting and (len(open_ones) < 5 or rng.random() < 0.1):
            open_ones.append(waiting.pop(0))
        ride = open_ones[int(rng.integers(len(open_ones)))]
        found.append(ride.pop(0))
        open_ones = [one for one in open_ones if one]
        if rng.random() < 0.03:
            found.append(("observe", len(found)))
    for number in range(len(EXTENSIONS)):
        found.insert(len(found) * (number + 1) // 4, ("extend", number))
    return found


class Client:
    """Does operations, and remembers the agent's choices."""

    def __init__(self) -> None:
        self.chosen: dict[tuple[int, int], tuple[str, str, str]] = {}

    def do(self, agent: am.Agent, op: Operation) -> str | None:
        try:
            return self._do(agent, op)
        except am.InputError:  # the agent's patience has ended this ride
            return "refused"

    def _do(self, agent: am.Agent, op: Operation) -> str | None:
        kind, k = op[0], op[1]
        draw = np.random.default_rng([k, *(op[2:] or (9,))])
        if kind == "observe":
            agent.observe(["a", "c", "e"], ["r", "go"], event_id=f"{k}")
            return None
        if kind == "extend":
            agent.extend(*EXTENSIONS[k])
            return None
        episode = agent.begin(event_id=f"ride {k}")
        if kind in ("arrive", "cost") and (k, op[2]) not in self.chosen:
            return None
        if kind == "act":
            choice = episode.act()
            known = [*STEPS, *(step for steps, _ in EXTENSIONS for step in steps)]
            following = sorted({y for x, a, y in known if (x, a) == (choice.state, choice.action)})
            if (choice.state, choice.action) == ("a", "m"):  # leads to c first, and to b after it was brought back
                following = [y for y in following if y in {s[2] for s in _steps_of(agent, episode.id)}]
            state = following[int(draw.integers(len(following)))]
            return json.dumps([choice.state, choice.action, state])
        if kind == "arrive":
            episode.arrive(self.chosen[k, op[2]][2])
        elif kind == "cost":
            episode.cost(float(draw.integers(0, 12)), at=self.chosen[k, op[2]][0])
        elif kind == "tell":
            agent.tell(episode.id, {step: float(draw.integers(0, 10)) for step in agent_steps(agent)})
        elif kind == "end":
            episode.end()
        return None

    def note(self, op: Operation, answer: str | None) -> None:
        if op[0] == "act" and answer not in (None, "refused"):
            self.chosen[op[1], op[2]] = tuple(json.loads(answer))


def _steps_of(agent: am.Agent, id: int) -> list[tuple]:
    """The steps from the start with the action m, in the world of an episode."""
    state = agent._recorder.state
    return [step for step in state.worlds[agent._recorder.find(id).world].steps if step[:2] == ("a", "m")]


def agent_steps(agent: am.Agent) -> list[tuple]:
    return agent._recorder.state.world.steps


def digest(agent: am.Agent) -> str:
    return hashlib.sha256(agent.state_bytes()).hexdigest()


def opened(path: Path, learner: str, durable: bool = True) -> am.Agent:
    parameters = {"horizon": 200} if learner == "UOBREPS" else {}
    sk = am.Skeleton.from_steps(STEPS)
    return am.Agent.open(
        path,
        skeleton=sk,
        learner=learner,
        units=(0.0, 10.0),
        seed=3,
        patience=12,
        missing=5.0,
        durable=durable,
        **parameters,
    )


def end_at(place: str, passing: int) -> None:
    """Make this process kill itself at the n-th passage of a place."""
    kind, names, before = PLACES[place]
    left = [passing]

    def watched(method: Callable) -> Callable:
        def call(*arguments: object, **named: object) -> object:
            left[0] -= 1
            if left[0] == 0 and before:
                os.kill(os.getpid(), signal.SIGKILL)
            result = method(*arguments, **named)
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    for name in names:
        setattr(kind, name, watched(getattr(kind, name)))


def live(path: Path, learner: str, work: list[Operation], done: int, client: Client, out: int) -> None:
    """One life: continue the work for a while; print a line for each acknowledgement."""
    agent = opened(path, learner)
    for number in range(done, min(done + LONGEST, len(work))):
        answer = client.do(agent, work[number])
        client.note(work[number], answer)
        os.write(out, f"{number} {answer or ''}\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)


def main(folder: Path, learner: str, kills: int, seed: int) -> dict:
    recording.SNAPSHOT = 40
    rng = np.random.default_rng(seed)
    work = operations(learner == "UOBREPS", kills, rng)
    reference, client = opened(folder / "reference.db", learner, False), Client()
    noted, answers = [digest(reference)], []
    for op in work:
        answers.append(client.do(reference, op))
        client.note(op, answers[-1])
        noted.append(digest(reference))
    reference.close()
    path, client, done = folder / "killed.db", Client(), 0
    opened(path, learner).close()
    counts = dict.fromkeys(["from outside", *PLACES], 0)
    unacknowledged = 0
    while sum(counts.values()) < kills:
        place = "from outside" if rng.random() < 0.5 else str(rng.choice(list(PLACES)))
        passing, delay = int(rng.integers(1, 6)), float(rng.uniform(0.0, 0.06))
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            if place != "from outside":
                end_at(place, passing)
            try:
                live(path, learner, work, done, client, writing)
            finally:
                os._exit(1)
        os.close(writing)
        if place == "from outside":
            time.sleep(delay)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reading) as lines:
            for line in lines.read().splitlines():
                number, _, answer = line.partition(" ")
                assert int(number) == done, "an operation twice, or out of order"
                assert (answer or None) == answers[done], f"another answer to {work[done]}"
                client.note(work[done], answer)
                done += 1
        assert os.WIFSIGNALED(status), f"a life failed at {work[done]}"
        counts[place] += 1
        if rng.random() < 0.5:  # the log alone
            with sqlite3.connect(path) as connection:
                connection.execute("DELETE FROM snapshot")
            connection.close()
        agent = opened(path, learner)
        found = digest(agent)
        agent.log.close()
        ahead = done < len(work) and found == noted[done + 1] != noted[done]
        assert found == noted[done] or ahead, f"another state after {done} operations ({place})"
        unacknowledged += ahead
        assert done < len(work), "too little work"
    assert am.History.read(path).check() > done // 2  # every seal
    return {"kills": counts, "operations": done, "unacknowledged": unacknowledged}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
