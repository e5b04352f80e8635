"""Objects of one plane in memory: one order of versions, history for watches, compaction."""
