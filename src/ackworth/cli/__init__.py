"""The command: parse, call, exit code. One file a subcommand."""
