"""What is called from a training loop of transformers."""
