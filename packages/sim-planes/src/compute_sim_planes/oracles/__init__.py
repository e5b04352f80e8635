"""Oracles: checks over the recorded history or the final state of a run."""
