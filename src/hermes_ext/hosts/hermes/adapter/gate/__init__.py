"""Tool calls: judged once, run only as judged; and their results."""
