"""`kubectl compute ui`: a page on loopback that shows cities, cells, Workloads and Instances."""
