"""A hub with members for tests of Karmada, and their objects."""
