"""Optional packages, which extras such as ``pip install 'advmdp[routing]'`` install."""

from types import TracebackType

from advmdp.core.errors import MissingPackageError

EXTRAS = {
    "cvxpy": "cvx",
    "gymnasium": "gym",
    "matplotlib": "plot",
    "networkx": "routing",
    "ray": "ray",
    "scipy": "scipy",
    "topohub": "routing",
}
"""The extra that installs each package."""


class Optional:
    """``with optional: import networkx`` raises :class:`MissingPackageError` if networkx is not installed."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ModuleNotFoundError) and (package := str(error.name).partition(".")[0]) in EXTRAS:
            raise MissingPackageError(package, EXTRAS[package]) from None


optional = Optional()
