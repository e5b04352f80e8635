"""The fault matrix as data, and oracles as functions over what happened in a run.

O3, O7, O9 and O11 stand in `compute_sim_planes.oracles`, beside the history they read; here are
those that know what our objects mean (O1, O2, O4, O6, O8, O10) and the table of owners for O7.
"""
