"""HTML pages that need nothing else: the frame, style and tables that reports share."""
