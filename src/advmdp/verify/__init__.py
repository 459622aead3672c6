"""Checks of the paper's statements on live runs, and conformance checks for user-defined learners and criteria."""

from advmdp.verify import testing

__all__ = ["testing"]
