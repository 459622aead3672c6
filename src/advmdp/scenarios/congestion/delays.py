"""The delay of a link by its flow: a queue (M/M/1), a road (BPR), or a function of the user's own.

Every kind is an increasing convex function d_e of the flow f_e over the capacity c_e, u = f / c:

    mm1        d = free + service * u / (1 - u)         up to the knee, u = 0.9; from there on its tangent
    bpr        d = free * (1 + b * u^power) + fixed     Bureau of Public Roads; fixed is a toll or a price of distance
    function   d = function(flow, capacity)             both arrays over links, in the order of the topology's links

What equilibria and optima need of it (:mod:`advmdp.scenarios.congestion.assignment`):

    equilibrium    d itself, the gradient of Beckmann's potential  sum_e int_0^{f_e} d_e
    optimum        d + f d',  the gradient of  sum_e f_e d_e

A delay is measured up to ``free + buffer``, which is a queue that is full, or a road that nobody enters any more; what
``assignment`` computes knows no such limit.  ``scale``, the most that a link can take, makes losses of delays.
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
"""The limit of a road or function, in times the longest free delay, unless ``buffer`` is given."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
SAMPLES = 65
"""Flows at which a function of the user's own is checked."""

Function = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class LinkDelays(ABC):
    """The delay of each link by its flow; all arrays are over links."""

    capacity: FloatArray
    buffer: float
    """The most that a link takes beyond its free delay."""
    unit: str
    """Of delays: ms, min."""

    @property
    @abstractmethod
    def free(self) -> FloatArray:
        """The delay of an empty link."""

    @abstractmethod
    def convex(self, flow: FloatArray) -> FloatArray:
        """The delay, as if it had no limit."""

    @abstractmethod
    def slope(self, flow: FloatArray) -> FloatArray:
        """Its derivative by the flow."""

    @abstractmethod
    def with_capacity(self, capacity: FloatArray) -> "LinkDelays":
        """The same delays with other capacities."""

    @property
    def scale(self) -> float:
        """The most that a link can take, and what a lost packet costs."""
        return self.buffer + float(self.free.max())

    def measured(self, flow: FloatArray) -> FloatArray:
        """The delay up to its limit."""
        return np.minimum(self.convex(flow), self.free + self.buffer)

    def full(self, flow: FloatArray) -> float:
        """The share of links at their limit."""
        return float((self.convex(flow) > self.free + self.buffer).mean())

    def marginal(self, flow: FloatArray) -> FloatArray:
        """The derivative of flow * delay: what one more packet takes, and makes all others on the link wait."""
        return self.convex(flow) + flow * self.slope(flow)

    def potential(self, flow: FloatArray) -> float:
        """Beckmann's potential, the sum of the integrals from 0 to the flow: by quadrature, exact for polynomials."""
        half = 0.5 * flow
        found = sum(
            weight * (half * self.convex(half * (1.0 + node))).sum()
            for node, weight in zip(NODES, WEIGHTS, strict=True)
        )
        return float(found)


@dataclass(frozen=True, eq=False)
class QueueDelays(LinkDelays):
    """Propagation and an M/M/1 queue with its tangent from the knee on."""

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
    """Free-flow times that grow with a power of the load: BPR."""

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
    """A function of the user's own, and its derivative: by differences, unless it is given."""

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
    """BPR, with the limit that holds unless one is given."""
    made = RoadDelays(capacity, 1.0, unit, time, b, power, fixed)
    return RoadDelays(capacity, buffer or crowded(made), unit, *(frozen(one) for one in (time, b, power, fixed)))


def crowded(delays: LinkDelays) -> float:
    """The limit where none is given: ten times the longest free delay, or where all are 0 the longest at capacity."""
    longest = float(delays.free.max()) or float(delays.convex(delays.capacity).max())
    return CROWDED * (longest or 1.0)


def check_function(delays: LinkDelays, most: float, links: Callable[[int], str]) -> None:
    """Refuse what is no increasing convex function of flows from 0 to ``most``; ``links`` names a link."""
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
        "finite numbers of 0 or more": lambda: ~(np.isfinite(values) & (values >= 0.0)),
        "delays that do not fall with the flow": lambda: np.diff(values, axis=0) < -1e-9 * size,
        "delays that are convex in the flow": lambda: np.diff(values, 2, axis=0) < -1e-9 * size,
    }
    for expected, breaks in rules.items():
        if (broken := breaks()).any():
            t, k = (int(n) for n in np.argwhere(broken)[0])
            given = f"{values[t, k]:g} at a flow of {flows[t]:g} on {links(k)}"
            raise InputError("delays", given, f"{expected}, for all flows up to {most:g}")
