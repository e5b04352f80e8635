"""ResourceBindings: placement, scheduler, Works and aggregated status."""
