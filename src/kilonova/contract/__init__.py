"""What crosses a process boundary, declared once. No behaviour, no imports from other rooms."""
