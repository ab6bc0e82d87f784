"""What a model can do: capability protocols, requests and answers, adapter entries and their options."""
