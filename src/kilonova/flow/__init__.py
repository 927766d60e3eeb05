"""Durable operations: steps with undo, lease, deadline, resume."""
