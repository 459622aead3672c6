"""Where the runs of an experiment are played: local processes, or a Ray cluster."""
