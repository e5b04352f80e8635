"""The cell operator: deployments, instances, gates, quota, write-back."""
