"""What is done with finished runs: comparison, diagnosis, rescoring, merging."""
