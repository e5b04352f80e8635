"""Claims on Milo quota, as a library for any Datum service."""
