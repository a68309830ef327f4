"""All SQL, one file a dialect: migrations and named statements."""
