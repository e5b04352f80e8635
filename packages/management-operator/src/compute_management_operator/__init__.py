"""The management operator: workloads, federation, policy, projection, discovery, admission.

Nothing lives here yet. It will turn a Workload into one WorkloadDeployment per city, federate those into a
Karmada hub, mirror status back and project Instances into the user's project.
"""
