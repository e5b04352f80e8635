"""Access to API servers: certificates, kubeconfigs, a small client, and waiting for conditions."""
