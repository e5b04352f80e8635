"""Carries out plans against API servers; the only package that writes objects.

It compares owned fields first, so that a settled object gets no request.
"""
