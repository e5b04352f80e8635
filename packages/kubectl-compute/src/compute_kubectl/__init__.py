"""kubectl compute: where a Workload stands between project, hub and cells."""
