"""Configuration: strict YAML, models of the settings, and the loader.

A configuration with an unknown key or a wrong value is refused before anything starts.
"""
