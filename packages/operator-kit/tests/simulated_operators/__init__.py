"""The base of simulated worlds for tests of operators: planes, users and processes."""
