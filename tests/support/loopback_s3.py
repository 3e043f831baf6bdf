"""An object store on this machine, for tests: moto's S3 server on a free loopback port, with one bucket."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

BUCKET = "s3://bucket"


@cache
def of_store() -> dict[str, str]:
    """The address and credentials in the environment, the same for every server of this process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    keys = {"AWS_ACCESS_KEY_ID": "ana", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
    return {**keys, "AWS_ENDPOINT_URL": address}


@contextmanager
def loopback_s3() -> Iterator[str]:
    """The server, its address and credentials in the environment; gives the URL of its bucket."""
    from moto.server import ThreadedMotoServer
    from s3fs import S3FileSystem

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    port = of_store()["AWS_ENDPOINT_URL"].rpartition(":")[2]
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=int(port), verbose=False)
    server.start()
    before = dict(os.environ)
    os.environ.update(of_store())
    S3FileSystem.clear_instance_cache()
    try:
        S3FileSystem().makedirs(BUCKET.removeprefix("s3://"), exist_ok=True)  # moto keeps its state for a process
        yield BUCKET
    finally:
        server.stop()
        os.environ.clear()
        os.environ.update(before)
        S3FileSystem.clear_instance_cache()
