"""A hub with members for tests about Karmada, and the objects they are about."""
