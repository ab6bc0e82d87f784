"""Scores of a run: the columns of reports, the summary, its remarks, and the first tab of the page."""
