"""Notification payloads, versioned and legacy."""
