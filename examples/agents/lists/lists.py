"""Refuses clients by address and by country.

    lists.py SOCKET FOLDER

Files of FOLDER, each optional; a changed file is read again within a second, without a restart. A file that
cannot be read leaves the last good one in force.

    deny.txt       addresses and networks that are refused, one a line: 192.0.2.0/24
    allow.txt      if it is there, all others are refused
    countries.csv  ranges: first address, last address, country
    deny-countries.txt, allow-countries.txt   codes of countries, one a line: DE

Lines that begin with # are skipped. The country is passed on in x-client-country.
"""

import bisect
import csv
import ipaddress
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import agent_kit

CHECK_SECONDS = 0.5
UNKNOWN = "ZZ"


def lines(path):
    with open(path, encoding="utf-8") as file:
        found = [line.strip() for line in file]
    return [line for line in found if line and not line.startswith("#")]


class Networks:
    """Networks by version and length, so that a look-up costs one step for each length."""

    def __init__(self, path):
        self.lengths = {4: {}, 6: {}}
        for line in lines(path):
            network = ipaddress.ip_network(line, strict=False)
            known = self.lengths[network.version].setdefault(network.prefixlen, set())
            known.add(int(network.network_address) >> (network.max_prefixlen - network.prefixlen))

    def __contains__(self, address):
        known = self.lengths[address.version].items()
        number, bits = int(address), address.max_prefixlen
        return any(number >> (bits - length) in prefixes for length, prefixes in known)


class Countries:
    """Ranges of addresses that do not overlap, by their first address."""

    def __init__(self, path):
        self.ranges = {4: [], 6: []}
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.reader(file):
                if not row or row[0].startswith("#"):
                    continue
                first, last = (ipaddress.ip_address(text.strip()) for text in row[:2])
                if first.version != last.version or first > last:
                    raise ValueError("not a range: %s" % ",".join(row))
                self.ranges[first.version].append((int(first), int(last), row[2].strip().upper()))
        for ranges in self.ranges.values():
            ranges.sort()

    def of(self, address):
        ranges = self.ranges[address.version]
        place = bisect.bisect_right(ranges, int(address), key=lambda entry: entry[0])
        if place and int(address) <= ranges[place - 1][1]:
            return ranges[place - 1][2]
        return UNKNOWN


def codes(path):
    return {line.upper() for line in lines(path)}


FILES = {
    "deny.txt": Networks,
    "allow.txt": Networks,
    "countries.csv": Countries,
    "deny-countries.txt": codes,
    "allow-countries.txt": codes,
}


class Lists(agent_kit.Agent):
    name = "lists/1"

    def __init__(self, folder):
        self.folder = folder
        self.loaded = {}
        self.stamps = {}
        self.load()
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while True:
            time.sleep(CHECK_SECONDS)
            self.load()

    def load(self):
        for name, read in FILES.items():
            path = os.path.join(self.folder, name)
            try:
                status = os.stat(path)
            except FileNotFoundError:
                self.stamps.pop(name, None)
                self.loaded.pop(name, None)
                continue
            stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
            if self.stamps.get(name) == stamp:
                continue
            self.stamps[name] = stamp
            try:
                self.loaded[name] = read(path)
            except (OSError, ValueError, IndexError) as error:
                # A list that never was read must not be taken for an absent one.
                if name not in self.loaded:
                    raise SystemExit("%s: %s" % (path, error)) from None
                print("%s: %s; the last good one stays" % (path, error), file=sys.stderr)

    def request_headers(self, request):
        address = ipaddress.ip_address(request.client_ip)
        address = getattr(address, "ipv4_mapped", None) or address
        loaded = dict(self.loaded)
        country = loaded["countries.csv"].of(address) if "countries.csv" in loaded else UNKNOWN
        if address in loaded.get("deny.txt", ()):
            return agent_kit.block(reason="deny.txt")
        if "allow.txt" in loaded and address not in loaded["allow.txt"]:
            return agent_kit.block(reason="allow.txt")
        if country in loaded.get("deny-countries.txt", ()):
            return agent_kit.block(reason="country %s" % country)
        if "allow-countries.txt" in loaded and country not in loaded["allow-countries.txt"]:
            return agent_kit.block(reason="country %s" % country)
        header = agent_kit.set_header("x-client-country", country)
        return agent_kit.allow(request_headers=[header], metadata={"country": country})


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: %s SOCKET FOLDER" % sys.argv[0])
    agent_kit.serve(Lists(sys.argv[2]), sys.argv[1])
