"""Programs of the planes: which there are, how they are built with Go, where they are kept."""
