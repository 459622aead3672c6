"""Checkpoints of a game in progress: writing, reading, and checking that they belong to this game."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import MOST, FloatArray, check_like, whole
from advmdp.core.errors import CheckpointError, InputError
from advmdp.core.files import read_archive, write_archive
from advmdp.game.ledger import LINE, Ledger
from advmdp.game.policy_log import PolicyLog
from advmdp.model.policy import checked_policy

if TYPE_CHECKING:
    from advmdp.game.match import Match

SECONDS = 20.0
"""The default time between checkpoints, which are written between blocks (``match.py``)."""
KIND, VERSION = "game", 2
AGAIN = " (delete it to start again)"


def save(match: "Match") -> None:
    assert match.path is not None
    numbers, arrays = match.ledger.state()
    recent = match.policies if isinstance(match.policies, dict) else {}
    about = {"kind": KIND, "version": VERSION, "identity": match.identity, "started": match.started}
    about |= {"ledger": numbers, "policies": sorted(recent)}
    if match.late is not None:
        about |= {"learned": match.learner.episode}
        arrays |= match.late.state()
    if isinstance(match.policies, PolicyLog):
        about |= {"policy_log": match.policies.sync()}
    kept = {f"state/{name}": array for name, array in match.learner.state().items()}
    kept |= {"policies": np.array([recent[t] for t in sorted(recent)])}
    write_archive(match.path, about, {**arrays, **kept})


def load(match: "Match") -> None:
    """Resume the game from its checkpoint."""
    assert match.path is not None
    where = f"{match.path}"
    try:
        _take_up(match, *read_archive(match.path, KIND, VERSION))
    except InputError as error:
        expected = error.expected.removesuffix(AGAIN) + AGAIN
        place = error.where if where in error.where else f"{where}, {error.where}"
        raise CheckpointError(place, error.given, expected) from None
    except Exception as error:  # an invalid state may raise anything
        given = f"an invalid or incomplete game ({type(error).__name__}: {error})"
        raise CheckpointError(where, given, f"a checkpoint as advmdp saved it{AGAIN}") from error


def _take_up(match: "Match", about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Check the content of a checkpoint, then resume from it."""
    check_like(match.ledger.total, arrays["total"], "total")
    columns = LINE | match.account().keys()
    ledger = Ledger.of(about["ledger"], arrays["total"], columns, match.learner.marked().keys())
    started = whole("started", about["started"], 0, MOST)
    known = [match.identity, match.identity_of_version_1] if about["version"] == 1 else [match.identity]
    names = [*match.identity, *(about["identity"].keys() - match.identity.keys())]
    other = [name for name in names if about["identity"].get(name) not in [one.get(name, "") for one in known]]
    # The learner may be a new one, or the one that was interrupted.
    learned = whole("learned", about.get("learned", started + ledger.episodes), started, started + ledger.episodes)
    if not other and match.started not in (started, learned):
        other = ["learner"]
    if other:
        given = f"the checkpoint of another game, which differs in {' and '.join(other)}"
        raise InputError(f"{match.path}", given, "a checkpoint of this game")
    if isinstance(match.policies, PolicyLog):
        match.policies.take_up(ledger.episodes, about.get("policy_log"))
    else:
        match.policies = _recent(match, about["policies"], arrays["policies"], ledger.episodes)
    state = {name[6:]: array for name, array in arrays.items() if name.startswith("state/")}
    match.learner.take_over(state, learned)
    if match.late is not None:
        match.late.restore(arrays, match.learner)
    match.ledger, match.started = ledger, started
    match.learner.episode = learned


def _recent(match: "Match", episodes: list[int], policies: NDArray[Any], played: int) -> dict[int, FloatArray]:
    """The last few policies, for losses that react to them."""
    expected = list(range(max(0, played - match.losses.memory), played))
    if episodes != expected or len(policies) != len(expected):
        raise InputError("policies", f"{len(policies)} policies, of episodes {episodes}", f"of episodes {expected}")
    return {t: checked_policy(match.mdp.skeleton, policy) for t, policy in zip(episodes, policies, strict=True)}
