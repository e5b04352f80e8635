"""A tiny operator on the kit: Notes of project planes are mirrored to a hub, their status comes
back.

It exists to show how an operator is written and to be broken on purpose: every fault the runtime
must survive is played on it. Two roles, one kind, one controller; everything an operator has, as
small as it can be.
"""
