"""Measurements behind the claims of this project; ``python -m benchmarks`` runs them."""
