"""Hashes, trees and places: sections "Hashes" and "Places" of docs/draw.md."""

import hashlib
from collections import OrderedDict

CHUNK = 1024
ROUNDS = 90
EMPTY_LEAF = hashlib.sha256(b"\x00").digest()


def sha256(data):
    return hashlib.sha256(data).digest()


def text(value):
    data = value.encode()
    return len(data).to_bytes(2, "big") + data


def member_leaf(sale, group, index, buyer, nonce):
    return sha256(b"\x00" + text(sale) + text(group) + index.to_bytes(4, "big") + text(buyer) + nonce)


def node(left, right):
    return sha256(b"\x01" + left + right)


def _window(sale, group, count, root):
    return text(sale) + text(group) + count.to_bytes(4, "big") + root


def seed_by_beacon(signature, sale, group, count, root):
    return sha256(b"\x02" + sha256(signature) + _window(sale, group, count, root))


def seed_by_secret(secret, sale, group, count, root):
    return sha256(b"\x03" + secret + _window(sale, group, count, root))


def seed_given_up(randomness, sale, group, count, root):
    return sha256(b"\x06" + randomness + _window(sale, group, count, root))


def seed_of_later_window(record_hash, group):
    return sha256(b"\x04" + record_hash + text(group))


class Tree:
    """The root over nodes that are added one after the other (RFC 6962, section 2.1); keeps one node a level."""

    def __init__(self):
        self.count = 0
        self.full = []  # roots of full subtrees, the largest first

    def add(self, hashed):
        size = self.count
        while size & 1:
            hashed = node(self.full.pop(), hashed)
            size >>= 1
        self.full.append(hashed)
        self.count += 1

    def root(self):
        if not self.full:
            return sha256(b"")
        root = self.full[-1]
        for left in reversed(self.full[:-1]):
            root = node(left, root)
        return root


def root_by_path(hashed, position, count, path):
    """The root of a tree of `count` nodes to which `path` leads from the node at `position`, or None if a path of
    this length leads to none."""
    last = count - 1
    for sibling in path:
        if last == 0:
            return None
        if position & 1 or position == last:
            hashed = node(sibling, hashed)
            # No sibling where the node is the last of its level and the left one.
            while position and not position & 1:
                position >>= 1
                last >>= 1
        else:
            hashed = node(hashed, sibling)
        position >>= 1
        last >>= 1
    return hashed if last == 0 else None


class Shuffle:
    """swap-or-not(seed, n, ·). A window of at most `KEPT` indices hashes each round and 256 positions once."""

    KEPT = 1 << 22

    def __init__(self, seed, n):
        self.n = n
        self.seed = seed
        self.pivots = [int.from_bytes(sha256(seed + bytes([r]))[:8], "little") % n for r in range(ROUNDS)]
        self.rounds = None
        if n <= self.KEPT:
            self.rounds = [(pivot, self._bits(r)) for r, pivot in enumerate(self.pivots)]

    def _bits(self, r):
        prefix = self.seed + bytes([r])
        return b"".join(sha256(prefix + block.to_bytes(4, "little")) for block in range((self.n + 255) // 256))

    def size(self):
        """Bytes that it keeps, about."""
        return ROUNDS * (200 + (self.n // 8 if self.rounds else 0))

    def place(self, i):
        n = self.n
        if self.rounds is None:
            return self._place_unkept(i)
        for pivot, bits in self.rounds:
            partner = (pivot - i) % n
            p = i if i > partner else partner
            if bits[p >> 3] >> (p & 7) & 1:
                i = partner
        return i

    def _place_unkept(self, i):
        for r, pivot in enumerate(self.pivots):
            partner = (pivot - i) % self.n
            p = max(i, partner)
            bits = sha256(self.seed + bytes([r]) + (p // 256).to_bytes(4, "little"))
            if bits[p % 256 // 8] >> (p % 8) & 1:
                i = partner
        return i


class Places:
    """The places of windows. Keeps the shuffles that were used last, up to `BYTES`."""

    BYTES = 256 << 20

    def __init__(self):
        self.kept = OrderedDict()
        self.bytes = 0

    def place(self, first, end, seed, index):
        key = (first, end, seed)
        shuffle = self.kept.get(key)
        if shuffle is None:
            shuffle = self.kept[key] = Shuffle(seed, end - first)
            self.bytes += shuffle.size()
            while self.bytes > self.BYTES and len(self.kept) > 1:
                self.bytes -= self.kept.popitem(last=False)[1].size()
        else:
            self.kept.move_to_end(key)
        return first + shuffle.place(index - first)
