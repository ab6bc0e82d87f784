"""Where a model is weak: buckets of attributes, and the worst items."""
