"""An example operator: it mirrors Notes of project planes to a hub, and their status back.

It shows the modules of an operator with two roles, one kind and one controller, and the contract
tests run every fault of the runtime on it.
"""
