"""Planning in known and uncertain worlds: optimism over confidence sets, and the best fixed policy in hindsight."""
