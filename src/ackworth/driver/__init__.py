"""Wire protocols: one file each. `contract` says what a driver is; `load(name)` finds one by its file's name."""
