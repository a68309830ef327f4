"""What is broken: one file a fault. `contract` says what a fault is; `schedule` says when."""
