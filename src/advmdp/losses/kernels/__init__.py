"""Compiled adversaries: noise around means, and losses that react to past policies."""

from advmdp.core.processor import kernel_path

__path__ = kernel_path(__path__)
