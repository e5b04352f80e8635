"""What a plan may ask for and what became of it: intents, comparison, outcomes. Pure.

A package of its own, so that plans do not import the applier and with it the network.
"""
