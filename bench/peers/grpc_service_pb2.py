"""The name under which the messages of tritonclient are pickled; Ray Serve passes them between processes."""

from tritonclient.grpc.service_pb2 import *  # noqa: F403
