"""The report as one HTML file: what runs scored, where they are weak, on which items, and how they were made."""
