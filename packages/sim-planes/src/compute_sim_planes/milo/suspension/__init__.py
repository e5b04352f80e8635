"""Suspension of projects: the condition of Projects, and the refusal of writes."""
