"""Cases drawn from the templates of a suite."""
