"""The conductor: the only place that wires plan, broker, load, fault and history together."""
