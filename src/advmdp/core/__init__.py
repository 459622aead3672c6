"""Building blocks of all other packages: errors, checked arrays, random streams, files, wording."""
