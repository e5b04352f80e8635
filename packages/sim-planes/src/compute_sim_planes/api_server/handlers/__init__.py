"""One module per concern of a request to a kind; each function answers one verb."""
