"""Self-contained HTML pages: the frame, style and tables that reports share."""
