"""Kubeconfigs, in-cluster credentials, exec plugins and TLS contexts for clients of API servers.

One strict loader for operators and libraries, so that a file that one of them refuses is not
accepted by another. Import the module you need: nothing is re-exported, and the YAML parser is
imported with the first file that is read.
"""
