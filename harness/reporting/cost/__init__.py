"""Cost of the languages of a run: fertility, premium, truncation, tokens and seconds."""
