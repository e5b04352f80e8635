"""What can be said about `deploy/` and the Containerfiles by reading them: rights, pods, flows,
images. Pure judgements over rendered manifests; nothing here talks to a server.
"""
