"""Documents, questions and gold; the loaders that read them."""
