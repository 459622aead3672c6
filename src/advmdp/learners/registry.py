"""The learners of this library by name, and how to make one: by name, from a file, or as a copy.

Add a new learner to :data:`LEARNERS`; specs, ``advmdp list``, ``verify`` and the tests then know it.
"""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, Literal

from advmdp.core.arrays import expect
from advmdp.core.errors import AdvMDPError, InputError
from advmdp.core.wording import one_of
from advmdp.criteria import Criterion
from advmdp.learners.base import Learner, make_again
from advmdp.learners.baselines import FollowLeader, ReplayLast, Uniform
from advmdp.learners.fpop import FPOP
from advmdp.learners.lazy_fpl import LazyFPL
from advmdp.learners.mdp_e import MDPE
from advmdp.learners.mdp_exp3 import MDPEXP3
from advmdp.learners.o_reps import OREPS
from advmdp.learners.ossp import OSSP
from advmdp.learners.parameters import parameter_names
from advmdp.learners.regal import REGAL
from advmdp.learners.saving import read_learner
from advmdp.learners.self_tuning import SelfTuning
from advmdp.learners.uc_o_reps import UCOREPS
from advmdp.learners.ucbvi import UCBVI
from advmdp.learners.ucrl2 import UCRL2
from advmdp.learners.uob_reps import UOBREPS
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton

LEARNERS: dict[str, type[Learner]] = {
    kind.__name__: kind
    for kind in (
        SelfTuning, UCOREPS, OREPS, UOBREPS, FPOP, MDPE, LazyFPL, OSSP, MDPEXP3, UCRL2, REGAL, UCBVI, Uniform,
        FollowLeader, ReplayLast,
    )
}  # fmt: skip


def make_learner(
    name: str,
    told: Skeleton | MDP,
    criterion: Criterion | None = None,
    *,
    offered: Mapping[str, Any] | None = None,
    **parameters: Any,
) -> Learner:
    """Make a learner by name.

    Parameters
    ----------
    name
        The name of its class, such as "UCOREPS". ``advmdp list learners`` prints all names.
    told
        The world. If it is an MDP, a learner that does not know the dynamics gets the skeleton only.
    criterion
        The criterion to minimise; the total loss by default.
    offered
        Parameters for learners that accept them; others ignore them. Useful for a horizon or a seed.
    **parameters
        Parameters of the learner. They take precedence over ``offered``.

    Returns
    -------
    Learner
        A new learner.

    Raises
    ------
    InputError
        If the name or a parameter is unknown.

    Examples
    --------
    >>> import advmdp as am
    >>> am.make_learner("UCOREPS", am.MDP.random([1, 3, 1], 2, seed=0), horizon=100).horizon
    100
    """
    kind = LEARNERS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InputError("learner", f"{name!r}", one_of(name, LEARNERS))
    takes = parameter_names(kind)
    _check_parameters(f"learner {name}", takes, parameters)
    given = {key: value for key, value in (offered or {}).items() if key in takes} | parameters
    make: Callable[..., Learner] = kind
    seen = told.skeleton if isinstance(told, MDP) and kind.knows == "skeleton" else told
    return make(seen, criterion=criterion, **given)


def clone(learner: Learner) -> Learner:
    """Make a new, untrained learner with the same arguments.

    Parameters
    ----------
    learner
        The learner to copy. It is not changed.

    Returns
    -------
    Learner
        A new learner of the same class. ``copy.deepcopy`` also copies what was learned.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> learner = am.UCOREPS(mdp.skeleton, horizon=100, eta=0.5)
    >>> game = am.play(mdp, am.losses.Stochastic(mdp.skeleton), learner, episodes=100)
    >>> am.clone(learner), am.clone(learner).episode
    (UCOREPS(horizon=100, eta=0.5), 0)
    """
    make: Callable[..., Learner] = type(expect(Learner, learner, "learner"))  # type: ignore[type-abstract]
    return make(learner.told, **learner.get_params())


def load_learner(
    path: str | PathLike[str], criterion: Criterion | None = None, make: Callable[..., Learner] | None = None
) -> Learner:
    """Read a learner that :meth:`Learner.save` wrote. It continues exactly as the original would have.

    Parameters
    ----------
    path
        The file.
    criterion
        The criterion, if it is made of Python functions, which files cannot hold.
    make
        The class of the learner, if it is not part of this library.

    Returns
    -------
    Learner
        The learner.

    Raises
    ------
    InputError
        If the file is damaged, or if ``criterion`` or ``make`` is missing or different.

    Examples
    --------
    >>> import advmdp as am
    >>> am.SelfTuning(am.Skeleton.dense([1, 3, 1], actions=2)).save("learner.npz")
    >>> am.load_learner("learner.npz").episode
    0
    """
    saved = read_learner(path)
    try:
        if make is None and saved.name not in LEARNERS:
            expected = f"make=, or one of {', '.join(LEARNERS)}"
            raise InputError(saved.where, f"a learner called {saved.name}", expected)
        kind = make or LEARNERS[saved.name]
        if make is None:
            _check_parameters(saved.where, parameter_names(kind), saved.parameters)
        told = saved.told()
        chosen = saved.criterion(criterion, told if isinstance(told, Skeleton) else told.skeleton)
        return make_again(kind, told, chosen, saved.parameters, saved.state, saved.episode)
    except AdvMDPError:
        raise
    except Exception as error:  # a constructor may raise anything when given invalid parameters
        given = f"a learner with missing or invalid parts ({type(error).__name__}: {error})"
        raise InputError(saved.where, given, "an undamaged file") from error


def _check_parameters(where: str, takes: tuple[str, ...], given: Mapping[str, Any]) -> None:
    """Reject unknown parameters."""
    if strange := [name for name in given if name not in takes]:
        raise InputError(where, f"parameter '{strange[0]}'", one_of(strange[0], takes))


def taking_late_losses() -> list[str]:
    """The names of the learners that support late losses."""
    return [name for name, kind in LEARNERS.items() if kind.takes_late_losses]


def fitting(
    feedback: str,
    knows: Literal["skeleton", "dynamics"] = "dynamics",
    optimises: Literal["any", "total"] = "total",
) -> str:
    """The names of the learners that work with this feedback and knowledge, and support such a criterion."""
    names = []
    for name, kind in LEARNERS.items():
        enough = (kind.knows == "skeleton" or knows == "dynamics") and (feedback != "bandit" or "bandit" in kind.sees)
        able = optimises == "total" or (kind.optimises == "any" and feedback != "bandit")
        if enough and able:
            asked = feedback == "bandit" and kind.sees == "full or bandit"
            names.append(f"{name}(feedback='bandit')" if asked else name)
    return ", ".join(names) if names else "no learner of this library"
