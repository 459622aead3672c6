"""Decisions in a running system: the agent, the log from which it can be rebuilt, and how to read that log."""
