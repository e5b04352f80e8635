"""What every simulated world of an operator stands on: ground, people, and processes."""
