"""Backends: the planes and operators that scenarios run on.

`sim` is in process and in virtual time, `real` uses processes, `pods` runs the operators as pods on
real kubelets, `kind` does so on kind clusters.
"""
