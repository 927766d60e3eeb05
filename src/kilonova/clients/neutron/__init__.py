"""Neutron client."""
