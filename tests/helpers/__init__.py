"""Helpers that several tests share: generators of problems, oracles, damaged files, a small store, a browser."""

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
"""The folder of the project, with its documentation and examples."""
