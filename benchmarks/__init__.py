"""Speed and memory against peers: every command prints ratios that were measured in one run."""
