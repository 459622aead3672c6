"""What everything else uses: errors, checked arrays, compilation, random streams, files, wording."""
