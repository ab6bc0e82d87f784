"""Layer-wise probing: linear classifiers on frozen hidden states, with controls, code lengths and intervals."""
