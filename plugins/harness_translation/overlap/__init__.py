"""The overlap of important words in a text and its translation, and the word aligners."""
