"""A web application firewall: the OWASP Core Rule Set, run by libmodsecurity.

    waf.py SOCKET [--rules FILE] [--responses]

FILE is waf.conf beside this program by default. With --responses the rules see responses too. Debian's
packages libmodsecurity3 and modsecurity-crs are needed. The ids of the rules that matched are the reason of a
refusal, which stands in the proxy's log alone.
"""

import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "python")]
import agent_kit
import modsecurity


def latin(text):
    return text.encode("latin-1")


def pairs(event):
    return [(latin(name), latin(value)) for name, value in event.headers]


class Firewall(agent_kit.Agent):
    name = "waf/1"
    request_body_mode = "buffered"
    completion_wanted = True

    def __init__(self, rules, responses):
        self.rules = modsecurity.Rules(rules)
        self.response_headers_wanted = responses
        self.response_body_mode = "buffered" if responses else "none"

    def request_headers(self, request):
        transaction = self.rules.transaction()
        request.state["transaction"] = transaction
        refused = transaction.request(
            (request.client_ip, request.client_port or 0),
            latin(request.method),
            latin(request.target),
            latin(request.http_version.removeprefix("HTTP/")),
            pairs(request),
        )
        if refused is None and not request.has_body:
            refused = transaction.request_body(b"")
        return self.decision(transaction, refused)

    def request_body(self, chunk):
        transaction = chunk.state["transaction"]
        return self.decision(transaction, transaction.request_body(chunk.data))

    def response_headers(self, response):
        transaction = response.state["transaction"]
        version = latin(response.http_version)
        refused = transaction.response(response.status, version, pairs(response))
        if refused is None and not response.has_body:
            refused = transaction.response_body(b"")
        return self.decision(transaction, refused)

    def response_body(self, chunk):
        transaction = chunk.state["transaction"]
        return self.decision(transaction, transaction.response_body(chunk.data))

    def completion(self, end):
        self.cancel(end.state)

    def cancel(self, state):
        if "transaction" in state:
            state["transaction"].end()

    @staticmethod
    def decision(transaction, refused):
        if refused is None:
            return agent_kit.allow()
        # Without a status the proxy answers 403 WAF_BLOCKED.
        status = None if refused == 403 else refused
        return agent_kit.block(status=status, reason=" ".join(transaction.matched()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The OWASP Core Rule Set for proxyd.")
    parser.add_argument("socket")
    parser.add_argument("--rules", default=os.path.join(HERE, "waf.conf"))
    parser.add_argument("--responses", action="store_true")
    arguments = parser.parse_args()
    agent_kit.serve(Firewall(arguments.rules, arguments.responses), arguments.socket)
