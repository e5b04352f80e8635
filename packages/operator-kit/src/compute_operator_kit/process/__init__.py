"""The process around an operator: command line, event loop, servers, leader election, exit code."""
