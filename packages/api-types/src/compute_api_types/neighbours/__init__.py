"""Kinds of our neighbours, by the fields we read or write and no others.

They are read tolerantly: a neighbour may be a version ahead, and a field that it leaves out is no
error here. All other fields of its objects stay in the raw document.
"""
