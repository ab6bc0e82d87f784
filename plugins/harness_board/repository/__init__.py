"""Results that many people add to: a folder in git with one JSON file per model, task and version of the task."""
