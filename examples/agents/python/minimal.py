"""An agent that wants every event: it refuses /private, and marks what it has seen."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import agent_kit


class Minimal(agent_kit.Agent):
    name = "minimal/1"
    request_body_mode = "chunks"
    response_headers_wanted = True
    response_body_mode = "buffered"
    completion_wanted = True

    def request_headers(self, request):
        if request.target.startswith("/private"):
            return agent_kit.block(reason="a private path")
        request.state["bytes"] = 0
        return agent_kit.allow(request_headers=[agent_kit.set_header("x-seen-by", self.name)])

    def request_body(self, chunk):
        chunk.state["bytes"] += len(chunk.data)
        if b"forbidden" in chunk.data:
            return agent_kit.block(status=422, body="a forbidden word\n", reason="forbidden word")
        return agent_kit.allow()

    def response_headers(self, response):
        return agent_kit.allow(response_headers=[agent_kit.set_header("x-checked-by", self.name)])


if __name__ == "__main__":
    agent_kit.main(Minimal())
