"""Planning with known and uncertain dynamics: optimism over confidence sets, and the best policy in hindsight."""
