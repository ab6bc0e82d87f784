"""Files that survive a kill: locks, the journal, records and the run folder."""
