"""What confined commands answer, compared with the same commands run bare."""
