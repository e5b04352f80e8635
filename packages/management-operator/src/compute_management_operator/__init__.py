"""The management operator: workloads, federation, policy, projection, discovery, admission."""
