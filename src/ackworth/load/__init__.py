"""The generator: workers, pacing, bodies; batches only."""
