"""Measures kilonova beside the peer on the same services, in one run: ratios, never absolute promises."""
