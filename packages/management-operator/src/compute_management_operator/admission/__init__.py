"""The validating webhook for Workloads, served by every replica (management.md 11, api.md 12).

```
request     the members of an AdmissionReview
observe     the project's Locations, from the caches of this replica
access      SubjectAccessReviews for networks, on the project's own plane
review      the result; the rules themselves are `compute_api_types.validation`
webhook     handlers for kopf, which `host` runs in a thread of its own
```

A request that names no project, or one that is not engaged here, is answered 500: deciding from
another plane, or from home, would admit Workloads by the rights and Locations of another tenant.
"""
