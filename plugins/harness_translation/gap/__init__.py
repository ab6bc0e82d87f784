"""The translation gap: score differences that translations cause, and the items that cause them."""
