"""Building blocks for all other packages: errors, checked arrays, processor dispatch, random streams, files, wording."""
