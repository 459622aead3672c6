"""The parameters of learners: their names, from the constructor's signature, and checks of their values.

A parameter is a constructor argument that is stored as an attribute of the same name.  The skeleton or MDP, the
criterion, and ``threads``, which changes no result, do not count as parameters.
"""

from collections.abc import Callable
from functools import cache
from inspect import Parameter, signature
from math import inf

from advmdp.core import wording
from advmdp.core.arrays import is_number, whole
from advmdp.core.errors import InputError

NOT_PARAMETERS = ("criterion", "threads")
NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


@cache
def parameter_names(make: Callable[..., object]) -> tuple[str, ...]:
    """The parameter names of a class of learners, in the order of its constructor."""
    takes = list(signature(make).parameters.values())[1:]
    return tuple(one.name for one in takes if one.kind in NAMED and one.name not in NOT_PARAMETERS)


def horizon_of(value: int) -> int:
    """Check a number of episodes: at least 1 and below 2^63."""
    return whole("horizon", value, 1, 2**63 - 1)


def between(name: str, value: float, most: float = inf) -> float:
    """Check that ``value`` is a number above 0 and below ``most``."""
    if not is_number(value) or not 0.0 < value < most:
        raise InputError(name, f"{value!r}", f"a number above 0 and below {most:g}")
    return float(value)


def theory_or(name: str, value: float | str) -> float | str:
    """Check that ``value`` is "theory" or a number above 0."""
    return "theory" if isinstance(value, str) and value == "theory" else between(name, value)  # type: ignore[arg-type]


def one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    """Check that ``value`` is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(name, f"{value!r}", wording.one_of(value, choices))
    return value
