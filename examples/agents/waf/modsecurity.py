"""libmodsecurity 3 by ctypes: rules, and one transaction for each request."""

import ctypes
import re
import threading
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p

LIBRARY = "libmodsecurity.so.3"
RULE_ID = re.compile(rb'\[id "(\d+)"\]')


class Intervention(ctypes.Structure):
    _fields_ = [
        ("status", c_int),
        ("pause", c_int),
        ("url", c_char_p),
        ("log", c_char_p),
        ("disruptive", c_int),
    ]


LOG_CALLBACK = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)

SIGNATURES = {
    "msc_init": (c_void_p, []),
    "msc_set_connector_info": (None, [c_void_p, c_char_p]),
    "msc_set_log_cb": (None, [c_void_p, LOG_CALLBACK]),
    "msc_create_rules_set": (c_void_p, []),
    "msc_rules_add_file": (c_int, [c_void_p, c_char_p, POINTER(c_char_p)]),
    "msc_new_transaction": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "msc_process_connection": (c_int, [c_void_p, c_char_p, c_int, c_char_p, c_int]),
    "msc_process_uri": (c_int, [c_void_p, c_char_p, c_char_p, c_char_p]),
    "msc_add_n_request_header": (c_int, [c_void_p, c_char_p, c_size_t, c_char_p, c_size_t]),
    "msc_process_request_headers": (c_int, [c_void_p]),
    "msc_append_request_body": (c_int, [c_void_p, c_char_p, c_size_t]),
    "msc_process_request_body": (c_int, [c_void_p]),
    "msc_add_n_response_header": (c_int, [c_void_p, c_char_p, c_size_t, c_char_p, c_size_t]),
    "msc_process_response_headers": (c_int, [c_void_p, c_int, c_char_p]),
    "msc_append_response_body": (c_int, [c_void_p, c_char_p, c_size_t]),
    "msc_process_response_body": (c_int, [c_void_p]),
    "msc_process_logging": (c_int, [c_void_p]),
    "msc_intervention": (c_int, [c_void_p, POINTER(Intervention)]),
    "msc_transaction_cleanup": (None, [c_void_p]),
}


class Rules:
    """A loaded set of rules."""

    def __init__(self, path):
        self.library = ctypes.CDLL(LIBRARY)
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments
        self.free = ctypes.CDLL(None).free
        self.free.argtypes = [c_void_p]
        self.messages = {}
        self.lock = threading.Lock()
        self.next_key = 1
        self.engine = self.library.msc_init()
        self.library.msc_set_connector_info(self.engine, b"proxyd-waf-agent/1")
        # The reference keeps the callback alive as long as the engine.
        self.callback = LOG_CALLBACK(self.logged)
        self.library.msc_set_log_cb(self.engine, self.callback)
        self.rules = self.library.msc_create_rules_set()
        error = c_char_p()
        if self.library.msc_rules_add_file(self.rules, path.encode(), byref(error)) < 0:
            raise RuntimeError((error.value or b"the rules cannot be loaded").decode())

    def logged(self, key, message):
        """Called by the library for each rule that matched."""
        text = ctypes.cast(message, c_char_p).value or b""
        found = self.messages.get(key)
        if found is not None:
            found.extend(RULE_ID.findall(text))

    def transaction(self):
        with self.lock:
            key = self.next_key
            self.next_key += 1
            self.messages[key] = []
        return Transaction(self, key)


class Transaction:
    """The rules' view of one request. Its methods return the status of a refusal, or None."""

    def __init__(self, rules, key):
        self.rules = rules
        self.key = key
        self.library = rules.library
        self.handle = rules.library.msc_new_transaction(rules.engine, rules.rules, key)

    def request(self, client, method, target, version, headers):
        library, handle = self.library, self.handle
        library.msc_process_connection(handle, client[0].encode(), client[1], b"0.0.0.0", 0)
        library.msc_process_uri(handle, target, method, version)
        for name, value in headers:
            library.msc_add_n_request_header(handle, name, len(name), value, len(value))
        library.msc_process_request_headers(handle)
        return self.refusal()

    def request_body(self, data):
        """Without a body too: most rules run when the body is there."""
        if data:
            self.library.msc_append_request_body(self.handle, data, len(data))
        self.library.msc_process_request_body(self.handle)
        return self.refusal()

    def response(self, status, version, headers):
        for name, value in headers:
            self.library.msc_add_n_response_header(self.handle, name, len(name), value, len(value))
        self.library.msc_process_response_headers(self.handle, status, version)
        return self.refusal()

    def response_body(self, data):
        if data:
            self.library.msc_append_response_body(self.handle, data, len(data))
        self.library.msc_process_response_body(self.handle)
        return self.refusal()

    def refusal(self):
        intervention = Intervention(status=200)
        if not self.library.msc_intervention(self.handle, byref(intervention)):
            return None
        # Both texts are copies that belong to the caller.
        for offset in (Intervention.url.offset, Intervention.log.offset):
            text = c_void_p.from_address(ctypes.addressof(intervention) + offset).value
            if text:
                self.rules.free(text)
        return intervention.status if intervention.disruptive else None

    def matched(self):
        """Ids of the rules that matched, in their order."""
        ids = (number.decode() for number in self.rules.messages.get(self.key, []))
        return list(dict.fromkeys(ids))

    def end(self):
        if self.handle:
            self.library.msc_process_logging(self.handle)
            self.library.msc_transaction_cleanup(self.handle)
            self.handle = None
            self.rules.messages.pop(self.key, None)
