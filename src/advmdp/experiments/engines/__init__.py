"""Engines that play the runs of an experiment: local processes, or a Ray cluster."""
