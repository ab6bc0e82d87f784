"""What only XTREME-R needs."""
