"""The report of an agent as one self-contained HTML file: paid, shadow baselines, visits, radii, alarms.

It is built from the log and the current agent.  All names are escaped, and the page loads nothing.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray
from advmdp.core.errors import InputError
from advmdp.core.files import path_of, write_bytes
from advmdp.core.wording import number, plural
from advmdp.live.alarms import CHANGED, alarms
from advmdp.live.answers import Status
from advmdp.live.evaluation import IMPOSSIBLE, check_delta
from advmdp.live.evidence import Evidence, gather
from advmdp.live.history import History
from advmdp.live.shadows import Shadow, judged_on, shadows
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
    "late": "losses that arrived after they were given up",
    "observed": "episodes that others decided",
    "clipped": "costs outside the units",
    "epochs": "epochs",
    "events": "events in the log",
}


def write_report(
    agent: "Agent", path: str | PathLike[str], policies: Mapping[str, object] | None = None, delta: float = 0.05
) -> Path:
    """Write the page; ``policies`` are more baselines, by name."""
    check_delta(delta)
    if not isinstance(policies, Mapping | None):
        raise InputError("policies", f"{policies!r}", "a dictionary of policies by name")
    out = path_of("path", path)
    write_bytes(out, report_page(agent, policies, delta).encode())
    return out


def report_page(agent: "Agent", policies: Mapping[str, object] | None, delta: float) -> str:
    """The page as text."""
    history = History.read(agent)
    evidence, status = gather(history), agent.status()
    beside, warnings = shadows(history, evidence, delta, policies), alarms(history, delta)
    account = Account.of(evidence, status)
    sentences = account.sentences() + _sentences(account, beside, evidence.clipped)
    if not warnings:
        sentences.append("There are no alarms.")
    if any(CHANGED in text for text in warnings):
        sentences.append(
            "Some outcomes have changed (see Alarms). The estimates assume no change, so they are unreliable."
        )
    return whole_page(
        "advmdp.live.page",
        title=f"Agent {agent.log.path.name}",
        about=escape(_about(history, status)),
        summary="".join(f"<p>{escape(text)}</p>" for text in sentences),
        first=_alarms(warnings),
        chart=_chart(account, beside),
        shadows=_shadow_table(account.compared, beside),
        about_shadows=escape(_about_shadows(history, evidence, delta)),
        actions=_actions(agent, evidence),
        cut=f"Shown are the {MOST_ACTIONS} most visited." if evidence.skeleton.num_pairs > MOST_ACTIONS else "",
        counts=table(
            ["", "count"],
            [row(text, [f"{getattr(status, key):,}"]) for key, text in COUNTS.items()],
            "Since the agent was made",
        ),
        data="{}",
    )


def _about(history: History, status: Status) -> str:
    low, high = history.terms.units.low, history.terms.units.high
    written = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    said = f"{history.terms.learner}, {plural(status.begun, 'episode')} begun"
    return f"{said}; a step costs {number(low)} to {number(high)}. Written on {written}."


class Account(NamedTuple):
    """What was paid in the caller's units, from the log: in all, and in the episodes that rules are judged on."""

    paid: FloatArray
    """The costs of the episodes that reached the end with all costs known."""
    compared: FloatArray
    """The costs of those among them on which rules are judged."""
    known: NDArray[np.bool_]
    """For each episode on which rules are judged, whether it is among them."""
    others: int
    """The number of episodes that did not reach the end, or have unknown costs."""
    rest: float
    """The known costs of these episodes."""
    whole: bool
    """Whether rules are judged on whole losses."""

    @classmethod
    def of(cls, evidence: Evidence, status: Status) -> "Account":
        """Read the account from the log."""
        paid, judged = np.array(list(evidence.paid.values()), float), judged_on(evidence)
        compared = np.array([evidence.paid[id] for id in judged if id in evidence.paid], float)
        known = np.array([id in evidence.paid for id in judged], np.bool_)
        return cls(paid, compared, known, status.begun - len(paid), status.paid - paid.sum(), bool(evidence.told))

    def sentences(self) -> list[str]:
        """Sentences on what was paid, what is left out, and how it is compared."""
        paid, compared, said = self.paid, self.compared, []
        if len(paid):
            mean, total = number(float(paid.mean())), number(float(paid.sum()))
            said.append(f"The agent paid {mean} per episode over {plural(len(paid), 'episode')}, {total} in all.")
        else:
            said.append("No episode has ended with all its costs known, so there is nothing to report yet.")
        if self.others and (len(paid) or abs(self.rest) > 1e-9):
            some = f" What is known of their costs adds {number(self.rest)}." if abs(self.rest) > 1e-9 else ""
            one = "1 other episode is" if self.others == 1 else f"{self.others:,} other episodes are"
            said.append(f"{one} left out: not ended at the last state, or not all costs are known.{some}")
        if len(paid) and len(self.known) and not len(compared) == len(paid) == len(self.known):
            needs = "whose whole loss is known" if self.whole else "whose actions still lead where they led then"
            which = f"The rules below are compared on the {plural(len(self.known), 'episode')} {needs}"
            mean = f"paid {number(float(compared.mean()))} per episode" if len(compared) else "has no known total"
            few = 0 < len(compared) < len(self.known)
            where = f"In the {len(compared):,} of these that ended with all costs known," if few else "There"
            said.append(f"{which}. {where} the agent {mean}.")
        return said


def _sentences(account: Account, beside: list[Shadow], clipped: int) -> list[str]:
    said: list[str] = []
    paid = account.compared
    if not len(account.paid):
        return said
    # NaN is neither below nor above: clipped costs cannot be compared with those paid.
    mean = float(paid.mean()) if len(paid) and not clipped else np.nan
    if clipped and beside:
        said.append("Rules are judged by costs clipped to the units, so they cannot be compared with what was paid.")
    unknown = [one.name for one in beside if np.isnan(one.estimate.cost)]
    for one in sorted((one for one in beside if one.name not in unknown), key=lambda shadow: shadow.estimate.cost):
        cost, low, high, _ = one.estimate
        judged = "below" if high < mean else "above" if low > mean else ""
        sure = f" The whole interval is {judged} what the agent paid." if judged else ""
        said.append(f"'{one.name}' would have paid {number(cost)}, between {number(low)} and {number(high)}.{sure}")
    return said + [f"What '{name}' would have paid is not known: {IMPOSSIBLE}." for name in unknown]


def _chart(account: Account, beside: list[Shadow]) -> str:
    """All lines are over the same episodes."""
    if len(account.compared) < 2:
        return ""
    courses = {AGENT: account.compared}
    courses |= {one.name: one.course[account.known] for one in beside if one.course is not None}
    so_far = {name: np.cumsum(course) / np.arange(1, len(course) + 1) for name, course in courses.items()}
    return lines_svg(so_far, "Mean cost of the episodes so far", "in your units")


def _shadow_table(paid: FloatArray, beside: list[Shadow]) -> str:
    body = [row(AGENT, [number(float(paid.mean())) if len(paid) else "–", "", "", f"{len(paid):,}"])]
    for one in beside:
        cost, low, high, episodes = one.estimate
        known = None if np.isnan(cost) else cost
        body.append(row(escape(one.name), [number(known), number(low), number(high), f"{episodes:,}"]))
    return table(["per episode", "paid", "at least", "at most", "episodes"], body, "Cost per episode, in your units")


def _about_shadows(history: History, evidence: Evidence, delta: float) -> str:
    gone = " Rules choose among the actions of today; the agent also had those that were removed since."
    return _how_judged(evidence, delta) + (gone if history.worlds[-1].removed else "")


def _how_judged(evidence: Evidence, delta: float) -> str:
    if evidence.told:
        judged = "Rules are judged on the whole losses, in the estimated world; intervals cover all plausible worlds"
        return f"{judged}, with probability {1.0 - delta:g}. Losses that react to decisions would have been different."
    judged = "Fixed policies are judged by weighted paths, with approximate intervals"
    return f"{judged} ({1.0 - delta:g}). Rules that respond to losses need whole losses to be judged."


def _actions(agent: "Agent", evidence: Evidence) -> str:
    sk, learner = agent.skeleton, agent.learner
    visits = np.add.reduceat(evidence.seen, sk.transition_ptr[:-1])
    radii = None if learner.row_set is None else learner.row_set.radii(sk)
    outcomes = np.diff(sk.transition_ptr)
    chosen = np.sort(np.argsort(-visits, kind="stable")[:MOST_ACTIONS])
    body = []
    for p in chosen.tolist():
        known = "–" if radii is None else f"{min(2.0, float(radii[p])):.2f}"
        radius = "one outcome" if outcomes[p] == 1 else known
        body.append(row(escape(sk.pair_label(p)), [f"{learner.policy[p]:.1%}", f"{visits[p]:,}", radius]))
    return table(["state/action", "probability now", "visits", "radius"], body, "Actions")


def _alarms(texts: list[str]) -> str:
    """The alarms as a coloured section above the summary; empty if all is well."""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    head = '<section class="alarms" aria-labelledby="h-alarms"><h2 id="h-alarms">Alarms</h2>'
    return f'{head}<ul class="findings">{items}</ul></section>\n' if texts else ""
