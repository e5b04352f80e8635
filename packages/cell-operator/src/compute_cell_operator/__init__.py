"""The cell operator: deployments, instances, gates, quota, write-back.

Nothing lives here yet. It will run Instances in one POP cell, hold them behind network and quota gates and
write them back to the hub.
"""
