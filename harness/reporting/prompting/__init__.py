"""How items were asked: unreadable answers, repeats and several prompts."""
