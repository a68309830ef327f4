"""Codecs: bytes to values and back, a batch at a time, without a socket."""
