"""Measures the model: the cost per transition of exact evaluation from 10^3 to 10^7 transitions, and of building one.

Claims: occupancy and best_response cost the same per transition, within a factor of two, from 10^3 to 10^7; ten million
transitions are built and validated in seconds.
"""

import time

import numpy as np
from rich.console import Console
from rich.table import Table

import advmdp as am
from benchmarks.measure import best_time, peak_bytes

STEPS, ACTIONS, BRANCHING = 10, 4, 5


def sparse_world(transitions: int) -> am.MDP:
    """A world with ten steps, four actions, five successors per pair, and about this many transitions."""
    width = max(BRANCHING, -(-transitions // (((STEPS - 2) * BRANCHING + 1) * ACTIONS)))
    return am.MDP.random([1, *[width] * (STEPS - 1), 1], ACTIONS, seed=0, branching=BRANCHING)


def main(console: Console) -> None:
    per_transition(console)
    building(console)
    sequences(console)


def per_transition(console: Console) -> None:
    table = Table(title="Exact evaluation, nanoseconds per transition (one thread, whole calls from Python)")
    for column in ("transitions", "occupancy", "best_response", "policy_values", "bytes per transition, MDP"):
        table.add_column(column, justify="right")
    columns: list[list[float]] = []
    for size in (10**3, 10**5, 10**7):
        mdp = sparse_world(size)
        sk = mdp.skeleton
        n = sk.num_transitions
        policy, loss, q = am.uniform_policy(sk), np.random.default_rng(0).random(n), np.empty(n)
        times = [
            best_time(lambda: am.occupancy(mdp, policy, out=q)),  # noqa: B023 (called in the same iteration)
            best_time(lambda: am.best_response(mdp, loss)),  # noqa: B023
            best_time(lambda: am.policy_values(mdp, policy, loss)),  # noqa: B023
        ]
        arrays = (sk.layer_ptr, sk.pair_ptr, sk.transition_ptr, sk.successor, mdp.transition)
        stored = sum(array.nbytes for array in arrays) / n
        columns.append([seconds / n * 1e9 for seconds in times])
        table.add_row(f"{n:,}", *(f"{value:.2f}" for value in columns[-1]), f"{stored:.1f}")
    spread = np.max(columns, axis=0) / np.min(columns, axis=0)
    table.add_section()
    table.add_row("largest / smallest", *(f"{value:.2f}x" for value in spread), "")
    met = "met" if spread[:2].max() <= 2.0 else "NOT met in this run"
    console.print(table, f"claimed: at most 2.00x for occupancy and best_response: {met}")
    console.print("(layers that exceed the cache cost more: values then come from memory one by one)\n")


def building(console: Console) -> None:
    table = Table(title="Building and validating sparse models")
    for column in ("transitions", "constructor", "seconds", "peak bytes per transition"):
        table.add_column(column, justify="right")
    for size in (10**5, 10**7):
        mdp = sparse_world(size)
        sk = mdp.skeleton
        arrays = (sk.layer_ptr, sk.pair_ptr, sk.transition_ptr, sk.successor)
        last = np.repeat(sk.transition_ptr[1:] - 1, np.diff(sk.transition_ptr))
        within = np.arange(sk.num_transitions) - np.repeat(sk.transition_ptr[:-1], np.diff(sk.transition_ptr))
        backwards = sk.successor[last - within]
        pair = np.repeat(np.arange(sk.num_pairs), np.diff(sk.transition_ptr))
        rows = (sk.state_of_pair[pair], pair - sk.pair_ptr[sk.state_of_pair[pair]], sk.successor, mdp.transition)
        shuffle = np.random.default_rng(0).permutation(sk.num_transitions)
        shuffled = [column[shuffle] for column in rows]
        jobs = {
            "Skeleton(pointers)": lambda: am.Skeleton(*arrays),  # noqa: B023
            "Skeleton(pointers), unsorted": lambda: am.Skeleton(*arrays[:3], backwards),  # noqa: B023
            "MDP(skeleton, rows)": lambda: am.MDP(sk, mdp.transition),  # noqa: B023
            "MDP.sparse(sorted table)": lambda: am.MDP.sparse(sk.layer_sizes, *rows),  # noqa: B023
            "MDP.sparse(shuffled table)": lambda: am.MDP.sparse(sk.layer_sizes, *shuffled),  # noqa: B023
            "MDP.random(branching=5)": lambda: sparse_world(size),  # noqa: B023
        }
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            seconds = time.perf_counter() - start
            table.add_row(f"{sk.num_transitions:,}", name, f"{seconds:.2f}", f"{peak_bytes(job) / size:.0f}")
        table.add_section()
    console.print(table, "claimed: seconds at 10^7\n")


def sequences(console: Console) -> None:
    table = Table(title="Loss sequences, nanoseconds per entry, in blocks of 1,000 episodes and one episode at a time")
    for column in ("losses", "entries per episode", "block", "at(t)"):
        table.add_column(column, justify="right")
    for layers in ([1, 2, 1], [1, 5, 5, 5, 5, 1]):
        mdp = am.MDP.random(layers, actions=4, seed=0)
        sk, n = mdp.skeleton, mdp.skeleton.num_transitions
        policies = np.tile(am.uniform_policy(sk), (1000, 1))
        for sequence in (
            am.losses.Stochastic(sk),
            am.losses.Switching(sk, period=500),
            am.losses.Seasonal(sk),
            am.losses.Drifting(sk),
            am.losses.Adaptive(sk),
            am.losses.Replay(sk, np.random.default_rng(0).random((1000, n))),
        ):
            block = best_time(lambda: sequence.block(0, 1000, policies), 0.3)  # noqa: B023
            single = best_time(lambda: sequence.at(500, policies), 0.3)  # noqa: B023
            name = type(sequence).__name__
            table.add_row(name, f"{n}", f"{block / (1000 * n) * 1e9:.1f}", f"{single / n * 1e9:.1f}")
        table.add_section()
    console.print(table)
