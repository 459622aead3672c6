"""Compiled planning: extended backward induction, and the sums of hindsight."""

from advmdp.core.processor import kernel_path

__path__ = kernel_path(__path__)
