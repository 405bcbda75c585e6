"""python -m verify_draw DIR …"""

import argparse
import re
import sys

from .beacon import QUICKNET, Chain
from .records import U32
from .verify import HASH, Unreadable, verify


def hexadecimal(size):
    def parse(value):
        if not re.fullmatch(f"[0-9a-f]{{{2 * size}}}", value):
            raise argparse.ArgumentTypeError(f"{value!r} is not {size} bytes in lower-case hexadecimal")
        return value

    return parse


def chain(value):
    parts = value.split(":")
    try:
        digest, key, genesis, period = parts
        found = Chain(hexadecimal(32)(digest), bytes.fromhex(hexadecimal(96)(key)), int(genesis), int(period))
    except ValueError:
        raise argparse.ArgumentTypeError("a chain is HASH:KEY:GENESIS:PERIOD") from None
    if found.genesis < 0 or found.period < 1:
        raise argparse.ArgumentTypeError("genesis is at least 0, and a period at least a second")
    return found


def index(value):
    if not value.isdecimal() or int(value) > U32:
        raise argparse.ArgumentTypeError(f"{value!r} is no index")
    return int(value)


def main(arguments=None, say=print):
    parser = argparse.ArgumentParser("verify_draw", description="Verifies the draw of a waiting room, by docs/draw.md.")
    parser.add_argument("dir", metavar="DIR", help="a folder that `onsale room export` wrote")
    parser.add_argument("--chain", type=chain, action="append", default=[], metavar="HASH:KEY:GENESIS:PERIOD",
                        help="a chain of drand other than quicknet")
    parser.add_argument("--seen", action="append", default=[], metavar="FILE|HASH",
                        help="what watchers saw, or a hash that must be in the log")
    parser.add_argument("--watcher", type=hexadecimal(32), action="append", default=[], metavar="KEY",
                        help="the key of a watcher whom you trust")
    parser.add_argument("--index", type=index, help="whether --buyer is at this index with --nonce")
    parser.add_argument("--buyer")
    parser.add_argument("--nonce", type=hexadecimal(16))
    given = parser.parse_args(arguments)
    asked = [given.index, given.buyer, given.nonce]
    if any(part is not None for part in asked) and None in asked:
        parser.error("--index, --buyer and --nonce go together")
    if given.nonce is not None:
        asked = argparse.Namespace(index=given.index, buyer=given.buyer, nonce=bytes.fromhex(given.nonce))
    else:
        asked = None
    chains = {named.hash: named for named in [QUICKNET, *given.chain]}
    try:
        return verify(
            given.dir,
            chains,
            [seen for seen in given.seen if not HASH.fullmatch(seen)],
            [seen for seen in given.seen if HASH.fullmatch(seen)],
            given.watcher,
            asked,
            say,
        )
    except (OSError, Unreadable) as reason:
        print(f"verify_draw: {reason}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
