"""What must work where the optional parts are installed: run by that environment's Python, in an empty folder."""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

TOOL = """
tool = { name = "fetch", description = "Digits on a page.", parameters = { { name = "url", type = "string" } } }
function tool.execute(params)
  local answer = http.get(params.url)
  return { status = answer.status, digits = regex.find_all("[0-9]+", answer.body)[1].text }
end
"""
CONFIG = """
[tools.script.fetch]
path = "fetch.lua"
http = ["127.0.0.1:{port}"]

[knowledge.sources.notes]
connector = "filesystem"
path = "notes"

[knowledge.sources.pages]
connector = "web"
urls = ["http://127.0.0.1:{port}/"]
allow_private = true
"""


class Page(http.server.BaseHTTPRequestHandler):
    """One page, for everybody."""

    def do_GET(self) -> None:
        body = b"<html><title>Lighthouse</title><body><p>The beam is seen from 18 miles.</p></body></html>"
        self.send_response(200 if self.path == "/" else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


def moonbox(*arguments: str) -> str:
    program = str(Path(sys.executable).with_name("moonbox"))
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


def main() -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        Path("fetch.lua").write_text(TOOL)
        Path("moonbox.toml").write_text(CONFIG.replace("{port}", str(port)))
        Path("notes").mkdir()
        Path("notes", "harbour.md").write_text("# Harbour\n\nBoats come in at noon.\n")
        scripts(port)
        knowledge()
        server.shutdown()
    served()
    proxied()
    print("all is well")


def scripts(port: int) -> None:
    told = moonbox("tool", "test", "fetch", "--param", f"url=http://127.0.0.1:{port}/")
    assert json.loads(told) == {"status": 200, "digits": "18"}, told


def knowledge() -> None:
    moonbox("sync")
    for words, title in (("boats", "Harbour"), ("beam", "Lighthouse")):
        (found,) = json.loads(moonbox("search", words, "--json"))
        assert found["title"] == title, found


def served() -> None:
    """Over HTTP: the API, and the address of the protocol."""
    program = [str(Path(sys.executable).with_name("moonbox")), "serve", "--http", "--port", "0"]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            address = process.stderr.readline().split()[-1].removesuffix("/mcp")
            with urllib.request.urlopen(f"{address}/health", timeout=30) as answer:
                assert json.load(answer)["status"] == "ok"
            body = json.dumps({"source_code": "return 6 * 7"}).encode()
            request = urllib.request.Request(f"{address}/run", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=30) as answer:
                assert json.load(answer)["values"] == [42]
        finally:
            process.terminate()


def proxied() -> None:
    """As a client of itself: both sides of the protocol."""
    program = str(Path(sys.executable).with_name("moonbox"))
    arguments = json.dumps(["serve", "--config", str(Path("moonbox.toml").absolute())])
    inner = f'command = "{program}"\nargs = {arguments}\nenv = {{MOONBOX_TRUST = "1"}}'
    Path("outer.toml").write_text(f"[mcp.servers.inner]\n{inner}\n")
    told = moonbox("mcp", "call", "--config", "outer.toml", "inner.lua_repl", "source_code=return 6 * 7")
    assert "42" in told, told


if __name__ == "__main__":
    main()
