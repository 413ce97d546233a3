"""The metrics, one file a family.

A metric is a function from one record to a value in [0, 1], or None where the record gives it nothing to compare; the
score of a run is the mean over the records that have a value.
"""
