"""One controller: a Note, its copy on the hub, and what the copy's status says."""
