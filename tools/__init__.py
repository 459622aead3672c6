"""Tools for developers: the map and the import graph of the sources, the lowest versions, wheels, the site."""
