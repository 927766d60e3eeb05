"""One flow per verb."""
