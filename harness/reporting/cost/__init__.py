"""What the languages of a run cost its model: fertility, premium, truncation, tokens and seconds."""
