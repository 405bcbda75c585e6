"""The page's formulas by second means, as plain as they can be written: what the honest room of the tests is made of."""

from hashlib import sha256 as _sha256


def sha256(data):
    return _sha256(data).digest()


def root(leaves):
    """RFC 6962, section 2.1: MTH, over leaves that are hashes already."""
    if not leaves:
        return sha256(b"")
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return sha256(b"\x01" + root(leaves[:k]) + root(leaves[k:]))


def path(m, leaves):
    """RFC 6962, section 2.1.1: PATH."""
    if len(leaves) == 1:
        return []
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    if m < k:
        return path(m, leaves[:k]) + [root(leaves[k:])]
    return path(m - k, leaves[k:]) + [root(leaves[:k])]


def bytes_to_uint64(data):
    return int.from_bytes(data, "little")


def uint_to_bytes(number, size):
    return number.to_bytes(size, "little")


def compute_shuffled_index(index, index_count, seed):
    """Ethereum's, phase 0, with 90 rounds."""
    for current_round in range(90):
        pivot = bytes_to_uint64(sha256(seed + uint_to_bytes(current_round, 1))[0:8]) % index_count
        flip = (pivot + index_count - index) % index_count
        position = max(index, flip)
        source = sha256(seed + uint_to_bytes(current_round, 1) + uint_to_bytes(position // 256, 4))
        byte = source[(position % 256) // 8]
        bit = (byte >> (position % 8)) % 2
        index = flip if bit else index
    return index


def text(value):
    return bytes([len(value.encode()) >> 8, len(value.encode()) & 255]) + value.encode()


def leaf(sale, group, index, buyer, nonce):
    return sha256(b"\0" + text(sale) + text(group) + bytes([0, 0, index >> 8, index & 255]) + text(buyer) + nonce)


def seed(kind, with_what, sale, group, leaves):
    return sha256(kind + with_what + text(sale) + text(group) + len(leaves).to_bytes(4, "big") + root(leaves))


def sign(secret_key, number):
    """A round of the test's own chain."""
    from py_ecc.bls.hash_to_curve import hash_to_G1
    from py_ecc.bls.point_compression import compress_G1
    from py_ecc.optimized_bls12_381 import multiply

    message = sha256(number.to_bytes(8, "big"))
    point = hash_to_G1(message, b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_", _sha256)
    return compress_G1(multiply(point, secret_key)).to_bytes(48, "big")


def public_key(secret_key):
    from py_ecc.bls.point_compression import compress_G2
    from py_ecc.optimized_bls12_381 import G2, multiply

    return b"".join(part.to_bytes(48, "big") for part in compress_G2(multiply(G2, secret_key)))
