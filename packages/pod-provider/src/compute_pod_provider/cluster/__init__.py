"""Requests to the API server of the cluster, and the credentials for them."""
