"""Task, training-set, recipe and suite specs: strict YAML, a catalogue of all of them, and selections."""
