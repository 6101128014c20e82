"""Agents for proxyd in Python 3, in one file without dependencies.

    import agent_kit

    class Guard(agent_kit.Agent):
        name = "guard/1"

        def request_headers(self, request):
            if request.target.startswith("/private"):
                return agent_kit.block(reason="a private path")
            return agent_kit.allow()

    agent_kit.main(Guard())

A connection is served by a thread of its own, its events in their order. Text of HTTP (targets, header
values) has one character for each byte: `value.encode("latin-1")` are the bytes. An exception of a method
fails its request alone, which the proxy then treats as the agent's `failure-mode` says.

`proxyd agent check SOCKET` tests an agent; docs/reference/agent-protocol.md describes the protocol.
"""

import base64
import json
import os
import signal
import socket
import stat
import struct
import sys
import threading
import traceback

VERSION = 1
HANDSHAKE_LIMIT = 16384
MAX_REQUESTS = 4096
DRAIN_SECONDS = 10
SOCKET_MODE = 0o660

HELLO, WELCOME = 0x01, 0x02
REQUEST_HEADERS, REQUEST_BODY, RESPONSE_HEADERS, RESPONSE_BODY = 0x10, 0x11, 0x12, 0x13
COMPLETION, CANCEL = 0x14, 0x1F
DECISION, DRAIN, ERROR = 0x20, 0x21, 0x7F

BODY_PARTS = "body_parts"

METHODS = {
    REQUEST_HEADERS: "request_headers",
    REQUEST_BODY: "request_body",
    RESPONSE_HEADERS: "response_headers",
    RESPONSE_BODY: "response_body",
    COMPLETION: "completion",
}


class Agent:
    """An agent. Each method gets an Event and returns a decision; `event.state` lasts for the request."""

    name = "agent"
    # "none", "buffered" or "chunks"; response bodies need response_headers_wanted.
    request_body_mode = "none"
    response_headers_wanted = False
    response_body_mode = "none"
    completion_wanted = False

    def request_headers(self, request):
        raise NotImplementedError

    def request_body(self, chunk):
        return allow()

    def response_headers(self, response):
        return allow()

    def response_body(self, chunk):
        return allow()

    def completion(self, end):
        """The end of a request. It is not answered."""

    def cancel(self, state):
        """A request that gets no completion: drop what its state holds."""


class Event:
    """The fields of an event as attributes; an absent one is None. `data` is bytes."""

    def __init__(self, fields, state):
        self.fields = fields
        self.state = state

    def __getattr__(self, name):
        return self.fields.get(name)

    def header(self, name):
        """All values of a header, in their order."""
        return [value for key, value in self.fields.get("headers", []) if key == name]


def allow(request_headers=(), response_headers=(), metadata=None, skip=()):
    """The request goes on. Edits are made by set_header, add_header, remove_header."""
    decision = {"decision": "allow"}
    if request_headers:
        decision["request_headers"] = list(request_headers)
    if response_headers:
        decision["response_headers"] = list(response_headers)
    if metadata:
        decision["metadata"] = metadata
    if skip:
        decision["skip"] = list(skip)
    return decision


def block(status=None, headers=(), body=None, reason=None):
    """The request is refused; the reason goes into the log alone."""
    decision = {"decision": "block"}
    if status is not None:
        decision["status"] = status
    return _answer(decision, headers, body, reason)


def redirect(location, status=302, headers=()):
    decision = {"decision": "redirect", "location": location, "status": status}
    return _answer(decision, headers, None, None)


def challenge(*challenges, headers=(), body=None, reason=None):
    """401 with a www-authenticate of each challenge."""
    decision = {"decision": "challenge", "challenges": list(challenges)}
    return _answer(decision, headers, body, reason)


def _answer(decision, headers, body, reason):
    if headers:
        decision["headers"] = [list(pair) for pair in headers]
    if body is not None:
        body = body.encode() if isinstance(body, str) else body
        decision["body"] = base64.b64encode(body).decode("ascii")
    if reason:
        decision["reason"] = _cut(reason, 512)
    return decision


def set_header(name, value):
    return {"op": "set", "name": name, "value": value}


def add_header(name, value):
    return {"op": "add", "name": name, "value": value}


def remove_header(name):
    return {"op": "remove", "name": name}


def _cut(text, length):
    return text.encode()[:length].decode(errors="ignore")


class ProtocolError(Exception):
    """The proxy broke the protocol; the connection ends."""

    code = "protocol"


class UnsupportedVersion(ProtocolError):
    code = "unsupported_version"


def _pairs(pairs):
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ProtocolError("a field twice")
    return fields


class Connection:
    def __init__(self, agent, stream):
        self.agent = agent
        self.stream = stream
        self.limit = HANDSHAKE_LIMIT
        self.send_limit = HANDSHAKE_LIMIT
        self.states = {}
        self.parts = {}
        self.lock = threading.Lock()
        self.is_draining = False

    def serve(self):
        try:
            self.shake()
            while True:
                frame = self.read()
                if frame is None:
                    return
                self.take(*frame)
        except ProtocolError as error:
            self.fail(0, error.code, str(error))
        except OSError:
            pass
        finally:
            for state in self.states.values():
                self.dropped(state)
            self.stream.close()

    def shake(self):
        frame = self.read()
        if frame is None:
            raise ConnectionResetError
        kind, hello = frame
        if kind != HELLO:
            raise ProtocolError("the first frame is not a hello")
        if VERSION not in hello.get("versions", []):
            raise UnsupportedVersion("no common version")
        if "json" not in hello.get("encodings", []):
            raise ProtocolError("no common encoding")
        agent = self.agent
        bodies = (agent.request_body_mode, agent.response_body_mode)
        self.has_state = agent.response_headers_wanted or any(mode != "none" for mode in bodies)
        self.has_state = self.has_state or agent.completion_wanted
        wants = {
            "request_body": agent.request_body_mode,
            "response_headers": agent.response_headers_wanted,
            "response_body": agent.response_body_mode,
            "completion": self.has_state,
        }
        welcome = {"id": 0, "version": VERSION, "encoding": "json", "agent": agent.name}
        features = [name for name in hello.get("features", []) if name == BODY_PARTS]
        self.send(WELCOME, {**welcome, "wants": wants, "features": features})
        self.limit = hello["max_event_bytes"]
        self.send_limit = hello["max_decision_bytes"]

    def take(self, kind, fields):
        number = fields["id"]
        if kind == CANCEL:
            self.parts.pop(number, None)
            if number in self.states:
                self.dropped(self.states.pop(number))
            return
        if kind not in METHODS:
            raise ProtocolError("a frame that does not belong here")
        if kind == REQUEST_HEADERS:
            if number in self.states:
                raise ProtocolError("an id that is in use")
            if len(self.states) >= MAX_REQUESTS:
                self.fail(number, "overloaded", "too many requests")
                return
            self.states[number] = {}
        elif number not in self.states:
            raise ProtocolError("an event of an unknown request")
        if "data" in fields:
            fields["data"] = base64.b64decode(fields["data"], validate=True)
            if not self.join(kind, number, fields):
                return
        self.decide(kind, number, fields)
        if kind == COMPLETION or not self.has_state:
            self.states.pop(number, None)

    def join(self, kind, number, fields):
        """Joins the parts of a buffered body. False while there are more to follow."""
        is_request = kind == REQUEST_BODY
        mode = self.agent.request_body_mode if is_request else self.agent.response_body_mode
        if mode != "buffered":
            return True
        if not fields["last"]:
            self.parts.setdefault(number, bytearray()).extend(fields["data"])
            return False
        fields["data"] = bytes(self.parts.pop(number, b"")) + fields["data"]
        return True

    def decide(self, kind, number, fields):
        event = Event(fields, self.states[number])
        try:
            decision = getattr(self.agent, METHODS[kind])(event)
            if kind == COMPLETION:
                return
            decision = {"id": number, "seq": fields["seq"], **decision}
            if self.has_state and "skip" in decision:
                # The state lasts until the completion.
                decision["skip"] = [kind for kind in decision["skip"] if kind != "completion"]
            sent = self.send(DECISION, decision)
            if not sent and decision["decision"] != "allow":
                # A denial stands without its body and its fields.
                kept = ("id", "seq", "status") if decision["decision"] == "block" else ("id", "seq")
                bare = {key: decision[key] for key in kept if key in decision}
                sent = self.send(DECISION, {**bare, "decision": "block"})
        except OSError:
            raise
        except Exception as error:
            traceback.print_exc()
            self.fail(number, "internal", type(error).__name__)
            return
        if not sent:
            self.fail(number, "internal", "a decision longer than the proxy accepts")

    def dropped(self, state):
        try:
            self.agent.cancel(state)
        except Exception:
            traceback.print_exc()

    def fail(self, number, code, message):
        try:
            self.send(ERROR, {"id": number, "code": code, "message": _cut(message, 512)})
        except OSError:
            pass

    def drain(self):
        self.is_draining = True
        try:
            self.send(DRAIN, {"id": 0})
        except OSError:
            pass

    def send(self, kind, fields):
        payload = json.dumps(fields, separators=(",", ":")).encode("ascii")
        if 1 + len(payload) > self.send_limit:
            return False
        with self.lock:
            self.stream.sendall(struct.pack(">IB", 1 + len(payload), kind) + payload)
        return True

    def read(self):
        """The next frame, or None at the end of the connection."""
        header = self.exactly(4)
        if header is None:
            return None
        (length,) = struct.unpack(">I", header)
        if not 1 <= length <= self.limit:
            raise ProtocolError("a frame of %d bytes" % length)
        frame = self.exactly(length)
        if frame is None:
            return None
        try:
            fields = json.loads(frame[1:].decode("utf-8"), object_pairs_hook=_pairs)
        except ValueError as error:
            raise ProtocolError(str(error)) from None
        if not isinstance(fields, dict) or not isinstance(fields.get("id"), int):
            raise ProtocolError("a payload without id")
        return frame[0], fields

    def exactly(self, length):
        pieces = bytearray()
        while len(pieces) < length:
            piece = self.stream.recv(min(65536, length - len(pieces)))
            if not piece:
                return None
            pieces += piece
        return bytes(pieces)


def listen(path):
    """A listening socket; the file of an agent that has ended is replaced."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
            finally:
                probe.close()
    except FileNotFoundError:
        pass
    listener.bind(path)
    os.chmod(path, SOCKET_MODE)
    listener.listen(128)
    return listener


def serve(agent, path):
    """Serves until SIGTERM or SIGINT; then the proxy sends no further requests, and those in hand are
    decided."""
    listener = listen(path)
    connections = {}

    def end(_signal, _frame):
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    try:
        while True:
            stream, _ = listener.accept()
            connection = Connection(agent, stream)
            thread = threading.Thread(target=connection.serve, daemon=True)
            connections[thread] = connection
            thread.start()
            for ended in [known for known in connections if not known.is_alive()]:
                del connections[ended]
    finally:
        listener.close()
        os.unlink(path)
        for connection in connections.values():
            connection.drain()
        for thread in connections:
            thread.join(DRAIN_SECONDS / max(1, len(connections)))


def main(agent):
    """Runs the agent at the socket that the first argument names."""
    if len(sys.argv) < 2:
        sys.exit("usage: %s SOCKET" % sys.argv[0])
    serve(agent, sys.argv[1])
