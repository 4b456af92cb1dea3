"""How much of a request repeats the one before."""

import random

from apps.agents.prefix import BLOCK, fingerprint, shared_length


def test_exact_to_a_block():
    rng = random.Random(3)
    data = rng.randbytes(20_000)
    for same in (0, 1, 127, 128, 5_000, 19_999, 20_000):
        other = data[:same] + bytes([data[same] ^ 1]) + data[same + 1 :] if same < len(data) else data + b"more"
        assert 0 <= same - shared_length(fingerprint(data), fingerprint(other)) < BLOCK


def test_nothing_before_repeats_nothing():
    assert shared_length(b"", fingerprint(b"x" * 1000)) == 0


def test_it_is_small():
    assert len(fingerprint(b"x" * 100_000)) < 3_200
