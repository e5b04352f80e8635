"""The command line: a table of commands, each a module with its flags and its run."""
