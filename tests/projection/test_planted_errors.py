"""Errors planted in every row solver and in answers: the certificate and its checks must catch them.

Most tests edit the text of a kernel in a copy of the package, build that kernel again and let the copy solve hard
problems. Nothing of the copy is trusted: the right answers come from this process, and the oracle of the hard problems
judges both.
"""

import inspect
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from inspect import currentframe
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from benchmarks.attack import MUTATIONS, edits_of, values

import advmdp as am
from advmdp.projection import reference
from tests.helpers import ROOT, planted
from tests.helpers.builds import KERNELS, Edit, edited, require_tools
from tests.helpers.hard_problems import KINDS, Array, attack, draw, skeleton
from tests.helpers.planted import solved

Error = tuple[str, str, str, str]

TRUSTING = (
    f"{KERNELS}/certificate.py",
    "    w.bound[pair] = -bound + offset - here\n"
    "    w.excess[pair] = sums.cost - mass * bound if mass > 0.0 else 0.0\n",
    "    shift = w.lift[x] + w.log_out[x] - w.log_total[x] - w.top[x] - LIFT\n"
    "    bound = offset - (w.log_pair[pair] - shift) if k >= 0 else bound\n"
    "    w.bound[pair] = -bound + offset - here\n"
    "    w.excess[pair] = sums.cost - mass * bound if mass > 0.0 and k < 0 else 0.0\n",
)
"""A certificate that takes kappa, and the cost of the row, from the row solver: ln q(x,a) holds what it found."""


def kinds_of(words: str) -> tuple[str, ...]:
    """The kinds of sets that an error concerns, by what is said of it."""
    kinds = tuple(kind for kind in KINDS if words.startswith(kind) or f"of a {kind}" in words)
    return kinds or ("ball", "point")


def builds() -> dict[str, list[Error]]:
    """The errors by the copies they are planted in: several in one, if they concern one kernel and different sets.

    Building a copy takes longer than all else.
    """
    copies: list[list[Error]] = []
    for error in MUTATIONS:
        kinds = kinds_of(error[3])
        fitting = [
            errors
            for errors in copies
            if errors[0][0] == error[0] and not any(kind in kinds_of(one[3]) for one in errors for kind in kinds)
        ]
        if fitting:
            fitting[0].append(error)
        else:
            copies.append([error])
    return {"; ".join(words for *_, words in errors): errors for errors in copies}


@cache
def right(kind: str) -> Array:
    """The values of the package's own answers: all right, by the oracle."""
    found = solved(kind)
    assert not any(found[name].any() for name in ("infeasible", "untold", "refused", "wrong"))
    return found["value"]


def outcome(folder: Path, kinds: tuple[str, ...], edits: Iterable[Edit]) -> dict[str, tuple[int, int]]:
    """How many problems of each kind a copy with these edits refuses, and how many it certifies though wrong."""
    require_tools()
    subprocess.run(
        [sys.executable, "-W", "ignore", planted.__file__, folder, *kinds], env=edited(folder, edits), check=True
    )
    counts = {}
    for kind in kinds:
        with np.load(folder / f"{kind}.npz") as found:
            best = right(kind)
            worse = ~(found["value"] - found["gap"] <= best + 1e-12 * np.abs(best))  # than it says
            wrong = found["solved"] & (found["infeasible"] | found["untold"] | worse)
            counts[kind] = int(found["refused"].sum()), int(wrong.sum())
    return counts


def test_the_number_of_planted_errors_is_the_documented_one():
    text = (ROOT / "docs" / "reliability.md").read_text()
    assert f"plants {len(MUTATIONS)} errors" in text
    solved = {name: inspect.signature(values).parameters[name].default for name in ("batches", "size")}
    assert f"solve {solved['batches'] * solved['size']:,} problems" in text


def test_the_copy_without_errors_solves_everything(tmp_path):
    assert set(outcome(tmp_path, KINDS, ()).values()) == {(0, 0)}


@pytest.mark.slow
@pytest.mark.parametrize("errors", builds().values(), ids=builds())
def test_no_answer_is_wrong_and_certified(errors, tmp_path):
    kinds = tuple(kind for *_, words in errors for kind in kinds_of(words))
    found = outcome(tmp_path, kinds, dict.fromkeys(edit for *code, _ in errors for edit in edits_of(*code)))
    for *_, words in errors:
        assert sum(found[kind][1] for kind in kinds_of(words)) == 0, words
        assert sum(found[kind][0] for kind in kinds_of(words)) > 0, words  # else it changes nothing, and shows nothing


@pytest.mark.slow
@pytest.mark.parametrize("words", ["box: kappa too large", "ball: kappa with a part of B", "point: kappa without u"])
def test_a_certificate_that_trusts_the_row_solver_would_let_errors_through(words, tmp_path):
    """The control: the test above fails if the certificate is computed from what the row solver says."""
    [code] = [m[:3] for m in MUTATIONS if m[3] == words]
    [(_, wrong)] = outcome(tmp_path, kinds_of(words), [*edits_of(*code), TRUSTING]).values()
    assert wrong > 0


@pytest.mark.slow
def test_the_trusting_certificate_accepts_right_answers(tmp_path):
    assert set(outcome(tmp_path, KINDS, (TRUSTING,)).values()) == {(0, 0)}


@pytest.fixture
def answer():
    sk = am.Skeleton.dense([1, 2, 1], 2)
    n = sk.num_transitions
    return am.project(sk, np.arange(n) / 10, am.Box(np.zeros(n), np.ones(n)))


@pytest.mark.parametrize("name", ["log_weights", "log_q", "q", "policy", "log_pairs", "beta"])
@pytest.mark.parametrize("change", ["longer", "shorter", "empty", "matrix", "text"])
def test_verify_refuses_arrays_of_the_wrong_shape(name, change, answer):
    array = getattr(answer, name)
    wrong = {
        "longer": np.append(array, 0.0), "shorter": array[:-1], "empty": array[:0], "matrix": array[None],
        "text": array.astype(str),
    }  # fmt: skip
    with pytest.raises(am.InputError, match=f"^{name}: "):
        replace(answer, **{name: wrong[change]}).verify()


def test_verify_refuses_fields_that_are_something_else(answer):
    for name, wrong in (("skeleton", None), ("row_set", np.ones(8))):
        with pytest.raises(am.InputError, match=f"^{name}: "):
            replace(answer, **{name: wrong}).verify()
    for name in ("dual", "gap"):
        assert not replace(answer, **{name: "0"}).verify().holds()
    smaller = am.Box(np.zeros(7), np.ones(7))
    with pytest.raises(am.InputError, match="lower"):
        replace(answer, row_set=smaller).verify()
    lists = {name: getattr(answer, name).tolist() for name in ("q", "log_q", "policy", "beta")}
    assert replace(answer, **lists).verify().holds()


@pytest.mark.parametrize(("kind", "weights"), list(product(KINDS, ("smooth", "ties", "levels", "far", "offset"))))
def test_the_reference_solves_hard_problems(kind, weights):
    """Judged by the oracle, and by a check that shares nothing with its own certificate."""
    for shape in ("square", "tall"):
        sk = skeleton(shape)
        problems = draw(sk, kind, weights, 4, np.random.default_rng(12))
        found = []

        def project(log_weights, rows, sk=sk, found=found):
            found.append(reference.project(sk, log_weights, rows))
            return found[-1]

        answers = attack(problems, project)
        assert not answers.wrong.any()
        assert not answers.refused.any()
        assert all(r.converged and r.verify().holds() for r in found)


def played_on(learner: am.Learner, mdp: am.MDP) -> int:
    """Play beyond the horizon; returns the line that does it."""
    losses = am.losses.Switching(mdp.skeleton, period=2)
    am.play(mdp, losses, learner, 5)
    return currentframe().f_lineno - 1


def updated(learner: am.Learner, mdp: am.MDP) -> int:
    """The same, one episode at a time."""
    path = mdp.sample(learner.policy, np.random.default_rng(0))
    for _ in range(5):
        learner.update(path, np.zeros(mdp.skeleton.num_transitions))
        line = currentframe().f_lineno - 1
    return line


@pytest.mark.parametrize("how", [played_on, updated])
def test_the_warning_beyond_the_horizon_names_the_line_of_the_user(how):
    mdp = am.MDP.random([1, 2, 1], 2, seed=0)
    with pytest.warns(am.AdvMDPWarning, match="horizon=3") as caught:
        line = how(am.UCOREPS(mdp.skeleton, horizon=3), mdp)
    [warning] = caught
    assert (warning.filename, warning.lineno) == (__file__, line)
