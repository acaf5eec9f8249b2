"""The subcommands of `python -m jtorch`."""
