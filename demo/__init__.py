"""`make demo`: the main job, shown and checked in one run."""
