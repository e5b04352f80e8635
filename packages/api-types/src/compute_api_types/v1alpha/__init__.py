"""The three kinds of `compute.datumapis.com/v1alpha`, one per module, and the parts they share.

A field never changes its meaning inside `v1alpha`. Import the module that defines what you need;
the package's root offers the same names.
"""
