"""Tables of results, in the terminal, in Markdown, in LaTeX, in a notebook."""
