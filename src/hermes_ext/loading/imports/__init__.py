"""Running the code of one extension so that it can reach neither another's nor the process."""
