"""The edges (x,x') of a skeleton: for unconstrained pairs the dual only sees w summed over the actions of a state."""

from math import prod

import numpy as np

from advmdp.core.arrays import apart
from advmdp.projection.kernels.compiled import compiled, compiled_inline
from advmdp.projection.kernels.lanes import LANES
from advmdp.projection.kernels.parts import divide
from advmdp.projection.kernels.types import (
    BASE_OF,
    EDGE_PTR,
    FIRST_OF_PAIR,
    FIRST_OF_STATE,
    MASS_B,
    NUMBERS_OF_STATES,
    PAIR_PTR,
    STATE_OF,
    VECTORS,
    Indices,
    Ints,
    Structure,
    Workspace,
)

WIDEST = 12  # layers up to this width are solved directly
KRYLOV = 24  # directions kept by one GMRES cycle, at most
FEWEST = 8  # and at least


@compiled_inline
def first_entry(structure: Structure, x: int) -> int:
    """The first transition that leaves x. From there on the successors of its edges are listed."""
    return int(structure.transition_ptr[structure.states[PAIR_PTR, x]])


@compiled_inline
def first_edge(structure: Structure, x: int, begin: int) -> int:
    """The edge of the transition with which a pair of x begins; those that follow lie on the edges that follow."""
    edge = structure.states[EDGE_PTR, x]
    if structure.states[BASE_OF, x] < 0:
        edge += begin - first_entry(structure, x)
    return int(edge)


@compiled
def mark_aligned(pair_ptr: Ints, transition_ptr: Ints, successor: Indices, aligned: Ints) -> None:
    """Flag the states whose pairs all have the same successors in the same order."""
    for x in range(pair_ptr.shape[0] - 1):
        aligned[x] = 1
        begin, end = transition_ptr[pair_ptr[x]], transition_ptr[min(pair_ptr[x] + 1, pair_ptr[-1])]
        for pair in range(pair_ptr[x] + 1, pair_ptr[x + 1]):
            start = transition_ptr[pair]
            same = transition_ptr[pair + 1] - start == end - begin
            if same:
                for j in range(end - begin):
                    same = same and successor[begin + j] == successor[start + j]
            if not same:
                aligned[x] = 0


def list_edges(states: Ints, transition_ptr: Ints) -> None:
    """Fill EDGE_PTR and, from the flags of `mark_aligned`, BASE_OF."""
    pair_ptr, aligned = states[PAIR_PTR], states[BASE_OF, :-1] == 1
    begin = transition_ptr[pair_ptr[:-1]]
    last = np.where(aligned, np.minimum(pair_ptr[:-1] + 1, pair_ptr[1:]), pair_ptr[1:])
    edges = transition_ptr[last] - begin
    states[EDGE_PTR, 1:] = np.cumsum(edges)
    shared = np.where(aligned, edges, 0)
    states[BASE_OF, :-1] = np.where(aligned, np.cumsum(shared) - shared, -1)
    states[BASE_OF, -1] = shared.sum()


@compiled
def mark_consecutive(begin: Ints, sizes: Ints, successor: Indices, first: Ints | Indices) -> None:
    """first[r] is the first of the sizes[r] successors from begin[r] on if these are consecutive states, else -1."""
    for r in range(first.shape[0]):
        first[r] = successor[begin[r]] if sizes[r] > 0 else -1
        for j in range(sizes[r]):
            if successor[begin[r] + j] != successor[begin[r]] + j:
                first[r] = -1
                break


def build_structure(
    layer_ptr: Ints, pair_ptr: Ints, transition_ptr: Ints, successor: Indices, threads: int
) -> Structure:
    """The structure of a skeleton given by its four arrays, divided between threads."""
    num_states, num_pairs = len(pair_ptr) - 1, len(transition_ptr) - 1
    states, pairs = np.zeros((4, num_states + 1), np.int64), np.empty((2, num_pairs), np.int32)
    states[PAIR_PTR] = pair_ptr
    mark_aligned(pair_ptr, transition_ptr, successor, states[BASE_OF])
    list_edges(states, transition_ptr)
    entries = transition_ptr[pair_ptr[:-1]]
    mark_consecutive(entries, np.diff(states[EDGE_PTR]), successor, states[FIRST_OF_STATE, :-1])
    mark_consecutive(transition_ptr[:-1], np.diff(transition_ptr), successor, pairs[FIRST_OF_PAIR])
    pairs[STATE_OF] = np.repeat(np.arange(num_states, dtype=np.int32), np.diff(pair_ptr))
    connected = bool(np.bincount(successor, minlength=num_states)[1:].all())
    parts = divide(transition_ptr[pair_ptr[layer_ptr[:-1]]], threads)
    return Structure(layer_ptr, states, transition_ptr, pairs, successor, parts, connected)


def build_workspace(structure: Structure) -> Workspace:
    """Allocate everything a projection on this structure writes to."""
    n, pairs = len(structure.successor), len(structure.transition_ptr) - 1
    states, shared = structure.states.shape[1] - 1, structure.states[BASE_OF, -1]
    widest = int(np.diff(structure.layer_ptr).max())
    longest = int(np.max(np.diff(structure.transition_ptr), initial=1))
    # As many as the arrays of transitions make look small; where steps are direct, these are hardly ever needed.
    leaving = n // states
    directions = min(KRYLOV, max(FEWEST, leaving // 4, min(leaving, 2 * FEWEST) if widest > WIDEST else 0))
    # Newton's step is found in one of two ways, which share their memory.
    band = (states if widest <= WIDEST else 0, 3 * widest + LANES - 1)
    basis, hessenberg = (directions + 1, states), (directions + 3, directions + 1)
    end = prod(basis)
    parts, layers = len(structure.parts) - 1, len(structure.layer_ptr) - 2
    shapes = {
        "weight": (n,), "base": (shared,), "pairs": (MASS_B + 1, pairs), "states": (NUMBERS_OF_STATES, states),
        "log_z": (layers,), "scratch": (parts, VECTORS + 3, longest + LANES),
    }  # fmt: skip
    marks: dict[str, tuple[tuple[int, ...], type[np.generic]]] = {
        "marks": ((2, pairs), np.int8), "alive": ((states,), np.int8), "forbidden": ((parts,), np.int8),
        "watched": ((pairs + 1,), np.int32), "watched_parts": ((parts + 1,), np.int64),
    }  # fmt: skip
    words = [-(-prod(shape) * np.dtype(kind).itemsize // 8) for shape, kind in marks.values()]
    matrices, *rest = apart(max(prod(band), end + prod(hessenberg)), *map(prod, shapes.values()), *words)
    floats = {name: array.reshape(shape) for (name, shape), array in zip(shapes.items(), rest, strict=False)}
    others = {
        name: array.view(kind)[: prod(shape)].reshape(shape)
        for (name, (shape, kind)), array in zip(marks.items(), rest[len(shapes) :], strict=True)
    }
    return Workspace(
        **floats, **others, band=matrices[: prod(band)].reshape(band), basis=matrices[:end].reshape(basis),
        hessenberg=matrices[end : end + prod(hessenberg)].reshape(hessenberg),
    )  # fmt: skip
