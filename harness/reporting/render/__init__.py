"""Reports in their formats: terminal, HTML, Markdown, LaTeX, rows and notebooks."""
