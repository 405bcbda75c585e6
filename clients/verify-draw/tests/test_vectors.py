"""Hashes, trees, places, rounds and signatures, against public values and second means."""

import hashlib
import unittest

from verify_draw import hashes
from verify_draw.beacon import QUICKNET, is_signature
from verify_draw.records import NoRecord, parse

from . import reference

# Round 1000 of quicknet, as drand publishes it.
ROUND_1000 = bytes.fromhex("b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39")
RANDOMNESS_1000 = "fe290beca10872ef2fb164d2aa4442de4566183ec51c56ff3cd603d930e54fdd"


class Trees(unittest.TestCase):
    def test_root_of_nothing_is_the_hash_of_nothing(self):
        self.assertEqual(hashes.Tree().root().hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")

    def test_roots_are_those_of_the_recursive_definition(self):
        for count in [*range(0, 70), 1023, 1024, 1025, 2500]:
            leaves = [hashes.sha256(b"%d" % n) for n in range(count)]
            tree = hashes.Tree()
            for leaf in leaves:
                tree.add(leaf)
            self.assertEqual(tree.root(), reference.root(leaves), count)

    def test_roots_of_rfc_6962_with_its_leaves(self):
        # The vectors of Certificate Transparency's reference implementation: a leaf there is the hash of 00 and its data.
        data = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
        roots = {
            1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            3: "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        }
        tree = hashes.Tree()
        for count, one in enumerate(data, 1):
            tree.add(hashes.sha256(b"\0" + bytes.fromhex(one)))
            if count in roots:
                self.assertEqual(tree.root().hex(), roots[count])

    def test_every_path_leads_to_the_root_and_no_other_position_has_it(self):
        for count in [1, 2, 3, 5, 6, 7, 8, 13, 21]:
            leaves = [hashes.sha256(b"%d" % n) for n in range(count)]
            root = reference.root(leaves)
            for position in range(count):
                path = reference.path(position, leaves)
                self.assertEqual(hashes.root_by_path(leaves[position], position, count, path), root)
                self.assertIsNone(hashes.root_by_path(leaves[position], position, count, [*path, root]))
                if path:
                    self.assertNotEqual(hashes.root_by_path(leaves[position], position, count, path[:-1]), root)
                    self.assertNotEqual(hashes.root_by_path(leaves[position], position ^ 1, count, path), root)


class Places(unittest.TestCase):
    def test_places_are_a_permutation_and_those_of_the_specification(self):
        for n in (1, 2, 3, 255, 256, 257, 1000):
            seed = hashes.sha256(b"seed %d" % n)
            shuffle = hashes.Shuffle(seed, n)
            places = [shuffle.place(index) for index in range(n)]
            self.assertEqual(places, [reference.compute_shuffled_index(index, n, seed) for index in range(n)])
            self.assertEqual(sorted(places), list(range(n)))

    def test_a_window_too_large_to_keep_has_the_same_places(self):
        n = hashes.Shuffle.KEPT + 1
        seed = hashes.sha256(b"large")
        shuffle = hashes.Shuffle(seed, n)
        self.assertIsNone(shuffle.rounds)
        for index in (0, 1, 12345, n - 1):
            self.assertEqual(shuffle.place(index), reference.compute_shuffled_index(index, n, seed))

    def test_windows_that_are_no_longer_kept_are_computed_again(self):
        places = hashes.Places()
        places.BYTES = 100_000
        seeds = [hashes.sha256(b"%d" % n) for n in range(20)]
        for seed in seeds * 2:
            self.assertEqual(places.place(100, 400, seed, 150), 100 + reference.compute_shuffled_index(50, 300, seed))
        self.assertLess(len(places.kept), 20)


class Rounds(unittest.TestCase):
    def test_round_1000_of_quicknet_is_signed(self):
        self.assertEqual(hashlib.sha256(ROUND_1000).hexdigest(), RANDOMNESS_1000)
        self.assertTrue(is_signature(QUICKNET.key, 1000, ROUND_1000))

    def test_another_round_another_key_and_what_is_no_point_are_not(self):
        infinity = bytes([0xC0]) + bytes(47)
        negative = bytes([ROUND_1000[0] ^ 0x20]) + ROUND_1000[1:]
        self.assertFalse(is_signature(QUICKNET.key, 1001, ROUND_1000))
        self.assertFalse(is_signature(reference.public_key(7), 1000, ROUND_1000))
        self.assertFalse(is_signature(QUICKNET.key, 1000, infinity))
        self.assertFalse(is_signature(QUICKNET.key, 1000, negative))
        self.assertFalse(is_signature(QUICKNET.key, 1000, bytes(48)))
        self.assertFalse(is_signature(bytes([0xC0]) + bytes(95), 1000, infinity))

    def test_a_point_outside_of_the_group_is_not(self):
        from py_ecc.bls.g2_primitives import subgroup_check
        from py_ecc.bls.point_compression import decompress_G1

        for x in range(1, 100):
            point = (0x80 << 376 | x).to_bytes(48, "big")
            try:
                if not subgroup_check(decompress_G1(int.from_bytes(point, "big"))):
                    self.assertFalse(is_signature(QUICKNET.key, 1000, point))
                    return
            except ValueError:
                pass
        self.fail("no point of the curve was found")

    def test_times_of_rounds(self):
        self.assertEqual(QUICKNET.time_ms(1), 1692803367000)
        self.assertEqual(QUICKNET.time_ms(1000), 1692806364000)
        # The last round that is out by the opening less the margin.
        opens = QUICKNET.time_ms(1000) + 60_000
        for after, number in ((0, 1000), (2999, 1000), (3000, 1001), (-1, 999)):
            self.assertEqual(QUICKNET.named_round(opens + after, opens - 600_000), number)
        # A short lead has a margin of a quarter.
        self.assertEqual(QUICKNET.named_round(opens, opens - 40_000), 1000 + 50_000 // 3000)
        # The first round *after* the closing whose number is a multiple of 200.
        self.assertEqual(QUICKNET.late_round(QUICKNET.time_ms(1000) - 1), 1000)
        self.assertEqual(QUICKNET.late_round(QUICKNET.time_ms(1000)), 1200)


class Canonical(unittest.TestCase):
    def test_what_says_the_same_is_no_record(self):
        from .room import Room, written

        record = dict(Room().records()[0], before="0" * 64)
        line = written(record)
        self.assertEqual(parse(line, None), (record, 2))
        for other in (
            line.replace(b'"number":0', b'"number": 0'),
            line.replace(b'"number":0', b'"number":-0'),
            line.replace(b'"number":0', b'"number":0e0'),
            line.replace(b'"number":0', b'"number":0.0'),
            line.replace(b'"number":0', b'"number":false'),
            line.replace(b'"number":0', b'"number":0,"number":0'),
            line.replace(b'"number":0,"at_ms":1800000000000', b'"at_ms":1800000000000,"number":0'),
            line.replace(b"gig-2027", b"gig\\u002d2027"),
            line.replace(b"gig-2027", b"gig\\ud800"),
            line.replace(b"gig-2027", b"gig\xff"),
            line.replace(b'"share":1,"codes":true', b'"share":1,"codes":false'),
            line.replace(b'"waiting":0,', b'"waiting":0,"looking":0,'),
            line.replace(b'"rules":2', b'"rules":3'),
            line.replace(b'"carry_milli":0', b'"carry_milli":18446744073709551616'),
            line.replace(b'"max_units":4', b'"max_units":0'),
            line.upper(),
            line + b"\r",
            b"\xef\xbb\xbf" + line,
            line.decode().encode("utf-16"),
            b"",
            b"[" * 100_000,
            b"null",
        ):
            self.assertNotEqual(other, line)
            with self.assertRaises(NoRecord, msg=other[:200]):
                parse(other, None)


if __name__ == "__main__":
    unittest.main()
