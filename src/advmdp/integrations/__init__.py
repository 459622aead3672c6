"""Integrations with other libraries: one file for each, imported only when it is used."""
