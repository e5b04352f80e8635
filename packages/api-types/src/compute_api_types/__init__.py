"""Typed models, names, conditions and admission rules of `compute.datumapis.com/v1alpha`.

Made for any Datum service: pydantic is the only dependency, and nothing here talks to a server.
"""
