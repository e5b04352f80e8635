"""The mirror controller: a Note, its copy on the hub, and the status of the copy."""
