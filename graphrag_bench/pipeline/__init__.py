"""From a method's page to its results: plan, stages, execution."""
