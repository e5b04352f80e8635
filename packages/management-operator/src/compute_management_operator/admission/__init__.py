"""Admission of Workloads: which project a request is about, what is known there, and the verdict.

```
request     what an AdmissionReview says
observe     the project's Locations, from the caches of this replica
access      may this user use that network: asked of the project's own plane
review      the verdict; the rules themselves are `compute_api_types.validation`
```

Served on every replica. A request that names no project, or one that is not engaged here, is
answered 500: never by another plane's facts, never by the home plane's.
"""
