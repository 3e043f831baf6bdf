"""An object store on this machine, for tests: moto's S3 server on a free loopback port, with one bucket."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

BUCKET = "s3://bucket"
_KEYS = {"AWS_ACCESS_KEY_ID": "ana", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}


@contextmanager
def loopback_s3() -> Iterator[str]:
    """The server, its address and credentials in the environment; gives the URL of its bucket."""
    from moto.server import ThreadedMotoServer
    from s3fs import S3FileSystem

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    before = dict(os.environ)
    os.environ.update(_KEYS, AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}")
    S3FileSystem.clear_instance_cache()
    try:
        S3FileSystem().makedirs(BUCKET.removeprefix("s3://"), exist_ok=True)  # moto keeps its state for a process
        yield BUCKET
    finally:
        server.stop()
        os.environ.clear()
        os.environ.update(before)
        S3FileSystem.clear_instance_cache()
