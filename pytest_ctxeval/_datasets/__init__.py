"""Where cases come from: retrievers, dataset objects and files."""
