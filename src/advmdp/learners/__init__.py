"""The learners, one file each; :mod:`advmdp.learners.base` defines what a learner is."""

from advmdp.learners import bounds

__all__ = ["bounds"]
