"""Storage of one plane in memory: versioned objects, history for watches, compaction."""
