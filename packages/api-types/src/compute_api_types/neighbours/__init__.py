"""Kinds of our neighbours, by the fields we read or write and no others.

They are read tolerantly: a neighbour may be a version ahead, and what it leaves out is no error
here. Whatever else an object of theirs holds stays in the raw document.
"""
