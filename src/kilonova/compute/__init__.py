"""Perform: the work of one host, through a virt driver."""
