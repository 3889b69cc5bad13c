"""The ``docker`` driver: the guest in a container without network, files or rights, and the image that it runs in.

``driver`` opens guests, ``image`` builds what they run in, ``discovery`` says whether an engine answers. Nothing
here is imported before somebody asks for it: the engine's client takes longer to load than a guest to start.
"""
