"""kilonova: an OpenStack compute service that speaks Nova's contracts."""

__version__ = "0.1.0"
