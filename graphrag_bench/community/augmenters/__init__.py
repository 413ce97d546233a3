"""Augmentations of a layer of nodes before it is clustered, one file each."""
