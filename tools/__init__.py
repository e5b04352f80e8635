"""What the sessions of `noxfile.py` call: programs that check and generate files of this tree.

Nothing here ships, and no package imports it.
"""
