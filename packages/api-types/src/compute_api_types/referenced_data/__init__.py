"""ConfigMaps and Secrets that a template names (`docs/spec/referenced-data.md`)."""
