"""No network at run time: every connection that leaves this machine is refused, and the main job still runs."""

import socket
from importlib import resources

import pytest
from scoped_retrieval.pipeline.cli import main

LOOPBACK = ("127.", "::1", "localhost")


class RefusedError(AssertionError):
    """A test tried to reach another machine."""


@pytest.fixture
def no_network(monkeypatch):
    """Only loopback and local sockets connect; name lookups of other hosts fail, too."""
    connect, lookup = socket.socket.connect, socket.getaddrinfo

    def guarded_connect(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and not str(address[0]).startswith(LOOPBACK):
            raise RefusedError(f"connection to {address[0]}")
        return connect(self, address)

    def guarded_lookup(host, *args, **kwargs):
        if host is not None and not str(host).startswith(LOOPBACK):
            raise RefusedError(f"lookup of {host}")
        return lookup(host, *args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", guarded_connect)
    monkeypatch.setattr(socket.socket, "connect_ex", guarded_connect)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_lookup)


def test_the_guard_refuses_another_machine(no_network):
    with pytest.raises(RefusedError), socket.socket() as connection:
        connection.connect(("192.0.2.1", 80))
    with pytest.raises(RefusedError):
        socket.create_connection(("example.org", 80))


def test_index_ask_replay_and_verify_need_no_network(no_network, tmp_path, monkeypatch, capsys):
    sample = resources.files("scoped_retrieval.data") / "demo" / "shop" / "work_tree"
    monkeypatch.chdir(tmp_path)
    assert main(["index", str(sample), "--project", "shop"]) == 0
    assert main(["ask", "How does createSession decide the role?", "--project", "shop"]) == 0
    snapshot = capsys.readouterr().err.split("snapshot: ")[1].split()[0]
    assert main(["show", snapshot]) == 0
    assert main(["verify"]) == 0
