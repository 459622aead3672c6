"""The tests, in folders with the names of the packages; ``tests/helpers`` is what they share."""
