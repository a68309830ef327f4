"""Imports brook before any test of it: pytest would otherwise take the directory brook/ for the package."""

import brook as brook
