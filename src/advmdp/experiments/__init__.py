"""Experiments: a spec defines runs, an engine plays them, a store keeps them, and a report shows them."""
