"""Static checks of `deploy/` and the Containerfiles: rights, pods, network flows, images, alerts.

They are pure functions over rendered manifests; nothing here connects to a server.
"""
