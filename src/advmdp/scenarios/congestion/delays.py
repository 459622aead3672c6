"""The delay of a link as a function of its flow: a queue (M/M/1), a road (BPR), or the user's own function.

Each delay is an increasing convex function d_e of the flow f_e, with u = f / c and capacity c:

    mm1        d = free + service * u / (1 - u)         up to the knee at u = 0.9, and its tangent beyond
    bpr        d = free * (1 + b * u^power) + fixed     Bureau of Public Roads; fixed is a toll or a cost of distance
    function   d = function(flow, capacity)             both arrays over links, in the order of the topology's links

:mod:`advmdp.scenarios.congestion.assignment` needs

    for equilibria   d, the gradient of Beckmann's potential  sum_e int_0^{f_e} d_e
    for optima       d + f d',  the gradient of  sum_e f_e d_e

Measured delays are capped at ``free + buffer``: a queue is full, or nobody enters a road any more.  ``assignment``
ignores this cap.  ``scale``, the largest possible delay of a link, converts delays to losses.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advmdp.core.arrays import FloatArray, frozen
from advmdp.core.errors import InputError

KNEE = 0.9
CROWDED = 10.0
"""The default ``buffer`` of a road or a function, as a multiple of the longest free delay."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
SAMPLES = 65
"""The number of flows at which a user's function is checked."""

Function = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class LinkDelays(ABC):
    """The delay of each link as a function of its flow.

    All arrays are over links. To define delays of your own, pass a function to
    :func:`scenarios.congestion.congestion_game`, or subclass this to control their derivative and capacities too.

    Attributes
    ----------
    capacity
        The capacity of each link.
    buffer
        The most that a queue adds to the delay of an empty link.
    unit
        The unit of delays, such as "ms".

    Examples
    --------
    >>> import networkx as nx
    >>> from advmdp.scenarios.congestion import congestion_game
    >>> pair = nx.DiGraph([("a", "b"), ("b", "a")], demands={"a": {"b": 5.0}})
    >>> delays = congestion_game(pair, load=0.5).delays
    >>> delays.convex(delays.capacity / 2).round(3).tolist()
    [1.005, 1.005]
    """

    capacity: FloatArray
    buffer: float
    unit: str

    @property
    @abstractmethod
    def free(self) -> FloatArray:
        """The delay of each link if it is empty."""

    @abstractmethod
    def convex(self, flow: FloatArray) -> FloatArray:
        """Compute delays without the cap.

        Parameters
        ----------
        flow
            The flow of each link.

        Returns
        -------
        FloatArray
            The delay of each link: increasing and convex in its flow.
        """

    @abstractmethod
    def slope(self, flow: FloatArray) -> FloatArray:
        """Compute the derivative of :meth:`convex`.

        Parameters
        ----------
        flow
            The flow of each link.

        Returns
        -------
        FloatArray
            The derivative by the flow.
        """

    @abstractmethod
    def with_capacity(self, capacity: FloatArray) -> "LinkDelays":
        """Make the same delays with other capacities.

        Parameters
        ----------
        capacity
            The new capacities.

        Returns
        -------
        LinkDelays
            A copy.
        """

    @property
    def scale(self) -> float:
        """The largest possible delay of a link, and the cost of a lost packet."""
        return self.buffer + float(self.free.max())

    def measured(self, flow: FloatArray) -> FloatArray:
        """Compute delays with the cap: what routers measure.

        Parameters
        ----------
        flow
            The flow of each link.

        Returns
        -------
        FloatArray
            The delay of each link, at most ``free + buffer``.
        """
        return np.minimum(self.convex(flow), self.free + self.buffer)

    def full(self, flow: FloatArray) -> float:
        """Compute the share of links whose delay is capped.

        Parameters
        ----------
        flow
            The flow of each link.

        Returns
        -------
        float
            From 0 to 1.
        """
        return float((self.convex(flow) > self.free + self.buffer).mean())

    def marginal(self, flow: FloatArray) -> FloatArray:
        """Compute the derivative of flow * delay: the delay that one more packet has and causes.

        Parameters
        ----------
        flow
            The flow of each link.

        Returns
        -------
        FloatArray
            The marginal delay of each link.
        """
        return self.convex(flow) + flow * self.slope(flow)

    def potential(self, flow: FloatArray) -> float:
        """Compute Beckmann's potential: the sum over links of the integral of the delay from 0 to the flow.

        Parameters
        ----------
        flow
            The flow of each link.

        Returns
        -------
        float
            The potential, by quadrature; exact for polynomials.
        """
        half = 0.5 * flow
        found = sum(
            weight * (half * self.convex(half * (1.0 + node))).sum()
            for node, weight in zip(NODES, WEIGHTS, strict=True)
        )
        return float(found)


@dataclass(frozen=True, eq=False)
class QueueDelays(LinkDelays):
    """Propagation and an M/M/1 queue, continued by its tangent beyond the knee."""

    propagation: FloatArray
    service: float

    @property
    def free(self) -> FloatArray:
        return self.propagation

    def convex(self, flow: FloatArray) -> FloatArray:
        u = flow / self.capacity
        bent = np.minimum(u, KNEE)
        waiting: FloatArray = self.propagation + self.service * (bent / (1.0 - bent) + (u - bent) / (1.0 - bent) ** 2)
        return waiting

    def slope(self, flow: FloatArray) -> FloatArray:
        bent = np.minimum(flow / self.capacity, KNEE)
        grown: FloatArray = self.service / (self.capacity * (1.0 - bent) ** 2)
        return grown

    def with_capacity(self, capacity: FloatArray) -> "QueueDelays":
        return QueueDelays(capacity, self.buffer, self.unit, self.propagation, self.service)


@dataclass(frozen=True, eq=False)
class RoadDelays(LinkDelays):
    """BPR: free-flow times that grow with a power of the load."""

    time: FloatArray
    b: FloatArray
    power: FloatArray
    fixed: FloatArray

    @property
    def free(self) -> FloatArray:
        return self.time + self.fixed + np.where(self.power == 0.0, self.time * self.b, 0.0)

    def convex(self, flow: FloatArray) -> FloatArray:
        grown: FloatArray = self.time * (1.0 + self.b * (np.maximum(flow, 0.0) / self.capacity) ** self.power)
        grown += self.fixed
        return grown

    def slope(self, flow: FloatArray) -> FloatArray:
        u, less = np.maximum(flow, 0.0) / self.capacity, np.maximum(self.power - 1.0, 0.0)
        steep: FloatArray = self.time * self.b * self.power * u**less / self.capacity
        return steep

    def with_capacity(self, capacity: FloatArray) -> "RoadDelays":
        return RoadDelays(capacity, self.buffer, self.unit, self.time, self.b, self.power, self.fixed)


@dataclass(frozen=True, eq=False)
class OwnDelays(LinkDelays):
    """A user's function, and its derivative: by finite differences unless it is given."""

    function: Function
    derivative: Function | None

    @property
    def free(self) -> FloatArray:
        return self.convex(np.zeros(len(self.capacity)))

    def convex(self, flow: FloatArray) -> FloatArray:
        return np.asarray(self.function(flow, self.capacity), np.float64)

    def slope(self, flow: FloatArray) -> FloatArray:
        if self.derivative is not None:
            return np.asarray(self.derivative(flow, self.capacity), np.float64)
        step = 1e-6 * np.maximum(self.capacity, flow)
        low = np.maximum(flow - step, 0.0)
        rise: FloatArray = (self.convex(flow + step) - self.convex(low)) / (flow + step - low)
        return rise

    def with_capacity(self, capacity: FloatArray) -> "OwnDelays":
        return OwnDelays(capacity, self.buffer, self.unit, self.function, self.derivative)


def road_delays(
    capacity: FloatArray,
    time: FloatArray,
    b: FloatArray,
    power: FloatArray,
    fixed: FloatArray,
    buffer: float | None,
    unit: str = "min",
) -> RoadDelays:
    """Make BPR delays with the given or the default buffer."""
    made = RoadDelays(capacity, 1.0, unit, time, b, power, fixed)
    return RoadDelays(capacity, buffer or crowded(made), unit, *(frozen(one) for one in (time, b, power, fixed)))


def crowded(delays: LinkDelays) -> float:
    """The default buffer: ten times the longest free delay or, if all are 0, the longest delay at capacity."""
    longest = float(delays.free.max()) or float(delays.convex(delays.capacity).max())
    return CROWDED * (longest or 1.0)


def check_function(delays: LinkDelays, most: float, links: Callable[[int], str]) -> None:
    """Check that delays are increasing and convex for flows from 0 to ``most``; ``links`` names a link."""
    flows = np.linspace(0.0, most, SAMPLES)
    count = len(delays.capacity)
    rows = []
    for flow in flows:
        value = np.asarray(delays.convex(np.full(count, flow)))
        if value.shape != (count,):
            raise InputError("delays", f"values of shape {value.shape}", f"a delay for each link, shape ({count},)")
        rows.append(value)
    values = np.array(rows)
    size = np.maximum(np.abs(values).max(axis=0), 1e-300)
    rules: dict[str, Callable[[], NDArray[np.bool_]]] = {
        "finite numbers, 0 or more": lambda: ~(np.isfinite(values) & (values >= 0.0)),
        "delays that do not fall with the flow": lambda: np.diff(values, axis=0) < -1e-9 * size,
        "delays that are convex in the flow": lambda: np.diff(values, 2, axis=0) < -1e-9 * size,
    }
    for expected, breaks in rules.items():
        if (broken := breaks()).any():
            t, k = (int(n) for n in np.argwhere(broken)[0])
            given = f"{values[t, k]:g} at a flow of {flows[t]:g} on {links(k)}"
            raise InputError("delays", given, f"{expected}, for all flows up to {most:g}")
