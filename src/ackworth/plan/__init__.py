"""A plan file, read safely and checked into frozen data."""
