"""Keystone sessions and service tokens."""
