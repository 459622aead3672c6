"""Compiled passes over a skeleton: occupancy measures, values, best responses, trajectories."""

from advmdp.core.processor import kernel_path

__path__ = kernel_path(__path__)
