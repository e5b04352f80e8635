"""Controllers that every plane has: garbage collector, namespace and CRD controllers.

Each listens to commits, queues keys, and reconciles them a moment later from a timer of the event
loop. There are no tasks and no threads; closing a plane cancels its timers.
"""
