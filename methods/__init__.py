"""Stages that belong to one method alone, a folder each."""
