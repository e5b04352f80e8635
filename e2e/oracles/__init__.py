"""Oracles as functions over the recorded history of a run, and the fault matrix as data.

O3, O7, O9, O11 are in `compute_sim_planes.oracles.invariants`, beside the history they read. This
package has those that read our kinds (O1, O2, O4, O6, O8, O10) and the ownership table for O7.
"""
