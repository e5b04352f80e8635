"""What runs beside a real API server and belongs to every plane: garbage collection, namespaces,
CRDs.

Each is told of commits, remembers what to look at, and looks a moment later from a timer of the
event loop. There are no tasks and no threads; a plane that is closed forgets its timers.
"""
