"""Compiled parts of what everything else uses: C types, and random numbers."""

from advmdp.core.processor import kernel_path

__path__ = kernel_path(__path__)
