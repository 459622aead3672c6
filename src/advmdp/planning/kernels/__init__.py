"""Compiled planning: extended backward induction, and sums for the best policy in hindsight."""

from advmdp.core.processor import kernel_path

__path__ = kernel_path(__path__)
