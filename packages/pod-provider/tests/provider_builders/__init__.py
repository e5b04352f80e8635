"""Builders of Instances, Pods and a cluster for the tests of the pod provider."""
