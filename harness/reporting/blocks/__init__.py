"""What a page is made of: tables, charts, notes, and how numbers are written."""
