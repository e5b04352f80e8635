"""Admission: ValidatingAdmissionPolicies and validating webhooks."""
