"""Decisions in a running system: the agent, the log that rebuilds it, and the tools that read the log."""
