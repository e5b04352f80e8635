"""Pod provider: runs every ungated Instance of its cluster as one Pod (pod-provider.md)."""
