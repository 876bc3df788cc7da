"""From values to text. Nothing is written here."""
