"""Routing, microversions, authentication and faults over Falcon."""
