"""Executes a plan: fits, asks the model, scores, and keeps what is finished."""
