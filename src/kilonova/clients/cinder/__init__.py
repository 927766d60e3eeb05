"""Cinder client."""
