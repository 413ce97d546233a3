"""The metrics of community quality.

A metric is a function from a `Division` to a number, or None where it is not defined. It registers with its label, the
direction in which it is better ("higher", "lower", or "" for what is only told) and how tables print it: percent, fraction
(three decimals), number (two) or count.
"""
