"""The edges (x,x') of a skeleton: for unconstrained pairs the dual only sees w summed over the actions of a state."""

import numpy as np

from advmdp.projection.compiled import compiled, compiled_memory
from advmdp.projection.types import (
    ALIGNED,
    BASIS,
    EDGE_PTR,
    FIRST_OF_PAIR,
    FIRST_OF_STATE,
    MASS_B,
    PAIR_PTR,
    STATE_OF,
    VECTORS,
    Flags,
    Indices,
    Ints,
    Structure,
    Workspace,
)

WIDEST = 12  # layers up to this width are solved directly
KRYLOV = 24  # directions kept by one GMRES cycle, at most
FEWEST = 4  # and at least; between them, a quarter of the transitions of a state


@compiled
def mark_aligned(pair_ptr: Ints, transition_ptr: Ints, successor: Indices, aligned: Flags) -> int:
    """Flag the states whose pairs all have the same successors; return how many do not."""
    others = 0
    for x in range(aligned.shape[0]):
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
        others += 1 - aligned[x]
    return others


@compiled_memory
def number_edges(
    pair_ptr: Ints, transition_ptr: Ints, successor: Indices, aligned: Flags, edge_ptr: Ints, edge_of: Indices
) -> Indices:
    """Number the edges state by state in order of first appearance."""
    num_states = aligned.shape[0]
    seen = np.full(num_states, -1, np.int64)
    edge_successor = np.empty(successor.shape[0], np.int32)
    count = 0
    edge_ptr[0] = 0
    for x in range(num_states):
        last = pair_ptr[x + 1]
        if aligned[x]:
            last = min(last, pair_ptr[x] + 1)
        for i in range(transition_ptr[pair_ptr[x]], transition_ptr[last]):
            y = successor[i]
            if seen[y] < edge_ptr[x]:
                seen[y] = count
                edge_successor[count] = y
                count += 1
            if edge_of.shape[0] > 0:
                edge_of[i] = seen[y]
        edge_ptr[x + 1] = count
    return edge_successor[:count].copy()


@compiled
def mark_consecutive(pointers: Ints, successors: Indices, first: Ints | Indices) -> None:
    """first[r] is the first successor in range r where these are consecutive states, else -1."""
    for r in range(first.shape[0]):
        first[r] = -1
        if pointers[r + 1] > pointers[r]:
            first[r] = successors[pointers[r]]
            for e in range(pointers[r], pointers[r + 1]):
                if successors[e] != first[r] + e - pointers[r]:
                    first[r] = -1
                    break


def build_structure(layer_ptr: Ints, pair_ptr: Ints, transition_ptr: Ints, successor: Indices) -> Structure:
    """The structure of a skeleton given by its four arrays."""
    num_states, num_pairs = len(pair_ptr) - 1, len(transition_ptr) - 1
    states, pairs = np.zeros((4, num_states + 1), np.int64), np.empty((2, num_pairs), np.int32)
    aligned = np.empty(num_states, np.int8)
    others = mark_aligned(pair_ptr, transition_ptr, successor, aligned)
    edge_of = np.empty(len(successor) if others else 0, np.int32)
    edge_successor = number_edges(pair_ptr, transition_ptr, successor, aligned, states[EDGE_PTR], edge_of)
    states[PAIR_PTR], states[ALIGNED, :-1] = pair_ptr, aligned
    mark_consecutive(states[EDGE_PTR], edge_successor, states[FIRST_OF_STATE, :-1])
    mark_consecutive(transition_ptr, successor, pairs[FIRST_OF_PAIR])
    pairs[STATE_OF] = np.repeat(np.arange(num_states, dtype=np.int32), np.diff(pair_ptr))
    connected = bool(np.bincount(successor, minlength=num_states)[1:].all())
    return Structure(layer_ptr, states, transition_ptr, pairs, successor, edge_successor, edge_of, connected)


def build_workspace(structure: Structure) -> Workspace:
    """Allocate everything a projection on this structure writes to."""
    n, pairs = len(structure.successor), len(structure.transition_ptr) - 1
    states, edges = structure.states.shape[1] - 1, len(structure.edge_successor)
    widest = int(np.diff(structure.layer_ptr).max())
    longest = int(np.max(np.diff(structure.states[EDGE_PTR]), initial=1))
    directions = min(KRYLOV, max(FEWEST, n // (4 * states)))
    return Workspace(
        weight=np.zeros(n), base=np.zeros(edges), pairs=np.zeros((MASS_B + 1, pairs)),
        marks=np.zeros((2, pairs), np.int8), watched=np.zeros(pairs + 1, np.int32),
        states=np.zeros((BASIS + directions + 1, states)), alive=np.zeros(states, np.int8),
        scratch=np.zeros((VECTORS + 3, longest)), band=np.zeros((states if widest <= WIDEST else 0, 3 * widest)),
        hessenberg=np.zeros((KRYLOV + 3, KRYLOV + 1)),
    )  # fmt: skip
