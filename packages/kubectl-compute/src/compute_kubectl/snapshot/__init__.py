"""What was read of each plane, as immutable values; JSON is decoded once, before any decision."""
