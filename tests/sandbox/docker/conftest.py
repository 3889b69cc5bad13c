from docker_support import docker_endpoint, docker_image

__all__ = ["docker_endpoint", "docker_image"]
