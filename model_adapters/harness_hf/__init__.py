"""placeholder until the branch is merged."""
