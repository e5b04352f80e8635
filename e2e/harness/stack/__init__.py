"""A stack of real planes: etcd, API servers, Karmada and Milo, started and stopped together."""
