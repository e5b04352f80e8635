"""Pure functions from a snapshot to a diagnosis: stages, causes, contradictions, deletion."""
