"""Resource interpreter: customizations with Lua scripts on the hub."""
