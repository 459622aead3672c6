"""Compiled rules: what each learner does after an episode, and the loop that plays them all."""

from advmdp.core.processor import kernel_path

__path__ = kernel_path(__path__)
