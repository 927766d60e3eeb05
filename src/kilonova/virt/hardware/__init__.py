"""NUMA, CPU, page and PCI arithmetic: pure functions."""
