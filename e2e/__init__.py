"""The same scenarios on every kind of plane, and the real planes themselves."""
