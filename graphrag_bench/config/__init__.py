"""Configuration: overrides, pages, schema."""
