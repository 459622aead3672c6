"""Checks of the paper's statements on live runs, and conformance checks for learners and criteria of your own."""

from advmdp.verify import testing

__all__ = ["testing"]
