"""Instruments for testing Ackworth and what plugs into it."""
