"""Projects: provisioning, default grants and deletion."""
