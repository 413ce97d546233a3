"""From answers to numbers: records, metrics, intervals, scores."""
