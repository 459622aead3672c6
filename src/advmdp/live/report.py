"""The report of an agent as one self-contained HTML file: paid, shadow baselines, visits, radii, alarms.

It is built from the log and the current agent.  All names are escaped, and the page loads nothing.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from advmdp.core.arrays import FloatArray
from advmdp.core.files import path_of, write_bytes
from advmdp.core.wording import number, plural
from advmdp.live.alarms import CHANGED, alarms
from advmdp.live.answers import Status
from advmdp.live.evidence import Evidence, gather
from advmdp.live.history import History
from advmdp.live.shadows import Shadow, shadows
from advmdp.web.lines import lines_svg
from advmdp.web.pages import row, table, whole_page

if TYPE_CHECKING:
    from advmdp.live.agent import Agent

MOST_ACTIONS = 300
"""The largest number of rows in the table of actions; if there are more, the most visited are shown."""
AGENT = "the agent"
COUNTS = {
    "begun": "episodes begun",
    "finished": "finished",
    "unfinished": "ended early",
    "running": "running",
    "told": "losses learned",
    "outstanding": "losses outstanding",
    "dropped": "losses given up",
    "late": "losses that arrived after that",
    "observed": "episodes that others decided",
    "clipped": "costs outside the units",
    "epochs": "epochs",
    "events": "events in the log",
}


def write_report(
    agent: "Agent", path: str | PathLike[str], policies: Mapping[str, object] | None = None, delta: float = 0.05
) -> Path:
    """Write the page; ``policies`` are more baselines, by name."""
    out = path_of("path", path)
    write_bytes(out, report_page(agent, policies, delta).encode())
    return out


def report_page(agent: "Agent", policies: Mapping[str, object] | None, delta: float) -> str:
    """The page as text."""
    history = History.read(agent)
    evidence, status = gather(history), agent.status()
    beside, warnings = shadows(history, evidence, delta, policies), alarms(history, delta)
    paid = _paid(history, evidence)
    sentences = _sentences(paid, beside)
    if any(CHANGED in text for text in warnings):
        sentences.append(
            "Some outcomes have changed (see Alarms). The estimates assume no change, so they are unreliable."
        )
    return whole_page(
        "advmdp.live.page",
        title=f"Agent {agent.log.path.name}",
        about=escape(_about(history, status)),
        summary="".join(f"<p>{escape(text)}</p>" for text in sentences),
        alarms=_list(warnings) if warnings else "<p>None.</p>",
        chart=_chart(paid, beside, history),
        shadows=_shadow_table(paid, beside),
        about_shadows=escape(_about_shadows(evidence, delta)),
        actions=_actions(agent, evidence),
        cut=f"Shown are the {MOST_ACTIONS} most visited." if evidence.skeleton.num_pairs > MOST_ACTIONS else "",
        counts=table(
            ["", "count"], [row(text, [f"{getattr(status, key):,}"]) for key, text in COUNTS.items()], "Counts"
        ),
        data="{}",
    )


def _about(history: History, status: Status) -> str:
    low, high = history.terms.units.low, history.terms.units.high
    written = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    said = f"{history.terms.learner}, {plural(status.begun, 'episode')} begun"
    return f"{said}; a step costs {number(low)} to {number(high)}. Written on {written}."


def _paid(history: History, evidence: Evidence) -> FloatArray:
    """What each episode paid, in the caller's units, for episodes with all costs known."""
    if evidence.told:
        sums = [one.paid for one in evidence.told if one.paid is not None]
    else:
        sums = [float(path.losses.sum()) for path in evidence.paths]
    return history.terms.units.costs(np.array(sums, float), evidence.skeleton.num_steps)


def _sentences(paid: FloatArray, beside: list[Shadow]) -> list[str]:
    if not len(paid):
        return ["No finished episode has all its costs known yet, so there is nothing to report."]
    mean = float(paid.mean())
    said = [
        f"The agent paid {number(mean)} per episode over {plural(len(paid), 'episode')}, {number(paid.sum())} in all."
    ]
    for one in sorted(beside, key=lambda shadow: shadow.estimate.cost):
        cost, low, high, _ = one.estimate
        judged = "below" if high < mean else "above" if low > mean else ""
        sure = f" All of that is {judged} what the agent paid." if judged else ""
        said.append(f"'{one.name}' would have paid {number(cost)}, between {number(low)} and {number(high)}.{sure}")
    return said


def _chart(paid: FloatArray, beside: list[Shadow], history: History) -> str:
    courses = {AGENT: paid} | {one.name: one.course for one in beside if one.course is not None}
    if len(paid) < 2:
        return ""
    so_far = {name: np.cumsum(course) / np.arange(1, len(course) + 1) for name, course in courses.items()}
    return lines_svg(so_far, "Mean cost of the episodes so far", "in your units")


def _shadow_table(paid: FloatArray, beside: list[Shadow]) -> str:
    body = [row(AGENT, [number(float(paid.mean())) if len(paid) else "–", "", "", f"{len(paid):,}"])]
    for one in beside:
        cost, low, high, episodes = one.estimate
        body.append(row(escape(one.name), [number(cost), number(low), number(high), f"{episodes:,}"]))
    return table(["per episode", "paid", "at least", "at most", "episodes"], body, "Cost per episode, in your units")


def _about_shadows(evidence: Evidence, delta: float) -> str:
    if evidence.told:
        judged = "Rules are judged on the whole losses, in the estimated world; intervals cover all plausible worlds"
        return f"{judged}, with probability {1.0 - delta:g}. Losses that react to decisions would have been different."
    judged = "Fixed policies are judged by weighted paths, with approximate intervals"
    return f"{judged} ({1.0 - delta:g}). Rules that respond to losses need whole losses to be judged."


def _actions(agent: "Agent", evidence: Evidence) -> str:
    sk, learner = agent.skeleton, agent.learner
    visits = np.add.reduceat(evidence.seen, sk.transition_ptr[:-1])
    radii = None if learner.row_set is None else learner.row_set.radii(sk)
    chosen = np.sort(np.argsort(-visits, kind="stable")[:MOST_ACTIONS])
    body = []
    for p in chosen.tolist():
        radius = "–" if radii is None else f"{min(2.0, float(radii[p])):.2f}"
        body.append(row(escape(sk.pair_label(p)), [f"{learner.policy[p]:.1%}", f"{visits[p]:,}", radius]))
    return table(["state/action", "probability now", "visits", "radius"], body, "Actions")


def _list(texts: list[str]) -> str:
    return f'<ul class="findings">{"".join(f"<li>{escape(text)}</li>" for text in texts)}</ul>'
