"""The one-machine cloud: starts, checks and stops every service a fresh machine needs."""
