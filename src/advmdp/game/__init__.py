"""Playing a learner against losses: the game, its checkpoints, and the ledger of what it cost."""
