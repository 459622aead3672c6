"""Sphinx extensions that build the documentation site; ``docs/conf.py`` lists them."""
