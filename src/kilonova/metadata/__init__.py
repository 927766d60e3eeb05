"""Instance metadata: documents, config drive content, the HTTP service."""
