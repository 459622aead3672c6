"""Games of a learner against losses: playing, checkpoints, and the ledger of costs."""
