"""Compiled building blocks: C types and random numbers."""

from advmdp.core.processor import kernel_path

__path__ = kernel_path(__path__)
