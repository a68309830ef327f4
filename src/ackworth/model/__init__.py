"""The words that everything else speaks: outcomes, claims, verdicts, errors."""
