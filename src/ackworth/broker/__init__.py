"""Brokers: one file each. `contract` says what a broker is; `registry` finds them."""
