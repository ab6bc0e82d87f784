"""Parts of a page: tables, charts, notes, and how numbers are written."""
