"""WSGI applications for any WSGI server."""
