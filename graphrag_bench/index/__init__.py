"""Indexes: vectors, BM25."""
