"""etcd, Kubernetes and Karmada as processes on one machine."""
