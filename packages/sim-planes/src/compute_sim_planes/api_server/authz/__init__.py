"""Authentication and authorization: tokens, impersonation, RBAC."""
