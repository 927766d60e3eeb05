"""What several requests about servers share: finding them, showing them, accepting new ones."""
