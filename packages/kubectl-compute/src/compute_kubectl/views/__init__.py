"""Further pure answers from a snapshot: timeline, tree, cities, quota, plan."""
