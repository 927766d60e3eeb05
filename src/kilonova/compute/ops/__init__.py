"""One file or folder per verb."""
