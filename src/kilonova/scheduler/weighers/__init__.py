"""Weighers: each gives a host a number; the weighted sum of them decides among those that will do."""
