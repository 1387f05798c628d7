"""Limit the downloads from a server to K at a time, without any help from the server.

    python examples/downloads.py

This is what the Fair-k paper was written for: many clients and one server with a slow connection. The clients agree
among themselves whose turn it is. The server here only counts, and rejects a client (503) if K others are already being
served. That never happens.
"""

import http.client
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fairgate import sync

K = 3
CLIENTS = 6
DOWNLOADS = 5  # per client
PIECE = bytes(65536)
PIECES = 128  # per file, which has 8 MiB


def client(port: int) -> None:
    with sync.join() as peer:  # now this process is a peer
        gate = peer.semaphore("downloads", k=K)  # shared by all peers that use this name; protocol="fair_k" is Fair-k
        for _ in range(DOWNLOADS):
            with gate:  # waits for its turn
                download(port)
        print(f"{DOWNLOADS} downloads, the longest wait {gate.statistics().wait_max * 1000:.0f} ms")


def download(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/file")
    answer = connection.getresponse()
    if answer.status != 200:
        sys.exit(f"rejected: {answer.status} {answer.reason}")
    while answer.read(len(PIECE)):
        pass
    connection.close()


class Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Download)
        self.lock = threading.Lock()
        self.inside = 0
        self.most = 0
        self.served = 0


class Download(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server = self.server
        with server.lock:
            free = server.inside < K
            server.inside += free
            server.most = max(server.most, server.inside)
        if not free:
            self.send_error(503, f"{K} clients are already being served")
            return
        try:
            self.send_response(200)
            self.end_headers()
            for _ in range(PIECES):
                self.wfile.write(PIECE)
        finally:
            with server.lock:  # before the connection is closed, which tells the client that the download is complete
                server.inside -= 1
                server.served += 1

    def log_message(self, *words: object) -> None:
        """Silent: a line per download would be too much."""


def main() -> int:
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = str(server.server_address[1])
    clients = [subprocess.Popen([sys.executable, __file__, port]) for _ in range(CLIENTS)]
    failed = sum([client.wait() != 0 for client in clients])
    print(f"the server sent {server.served} files, at most {server.most} at once; k is {K}")
    return failed


if __name__ == "__main__":
    if len(sys.argv) > 1:
        client(int(sys.argv[1]))
    else:
        sys.exit(main())
