"""One file per metric: its prompt, its reply schema, its score. Pure, as the core is."""
