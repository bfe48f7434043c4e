"""Ed25519 signatures (RFC 8032, section 5.1), in pure Python and nothing else.

SGLang images have no library for it that could be relied on. Verifying takes a few milliseconds and touches no secret.
Signing does not run in constant time either: a boot signs a handful of times, with a key that it drew for itself and
that is worth nothing when it ends, and whoever can time the launcher that closely is inside the pod.
"""

from __future__ import annotations

import hashlib

KEY_BYTES = 32
SIGNATURE_BYTES = 64

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_ROOT_OF_MINUS_ONE = pow(2, (_P - 1) // 4, _P)

_Point = tuple[int, int, int, int]
"""Extended coordinates X, Y, Z, T with x = X/Z, y = Y/Z, x*y = T/Z."""

_NEUTRAL: _Point = (0, 1, 1, 0)


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether `signature` is that of `message` under the public `key`.

    Any input is answered; none raises. Besides what section 5.1.7 asks for, a key of small order is refused, since
    such a key accepts signatures that nobody made.
    """
    if len(key) != KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    public, commitment = _decode(key), _decode(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if public is None or commitment is None or scalar >= _ORDER or _same(_times(8, public), _NEUTRAL):
        return False
    digest = hashlib.sha512(signature[:32] + key + message).digest()
    challenge = int.from_bytes(digest, "little") % _ORDER
    return _same(_times(scalar, _BASE), _add(commitment, _times(challenge, public)))


def public_key(seed: bytes) -> bytes:
    """Return the public key of a private one (section 5.1.5).

    Args:
        seed: 32 random bytes.
    """
    return _encode(_times(_expanded(seed)[0], _BASE))


def sign(seed: bytes, message: bytes) -> bytes:
    """Return the signature of a message (section 5.1.6).

    Args:
        seed: the private key, 32 bytes.
        message: of any length.
    """
    scalar, prefix = _expanded(seed)
    nonce = int.from_bytes(hashlib.sha512(prefix + message).digest(), "little") % _ORDER
    commitment = _encode(_times(nonce, _BASE))
    digest = hashlib.sha512(commitment + _encode(_times(scalar, _BASE)) + message).digest()
    response = (nonce + int.from_bytes(digest, "little") * scalar) % _ORDER
    return commitment + response.to_bytes(32, "little")


def _expanded(seed: bytes) -> tuple[int, bytes]:
    if len(seed) != KEY_BYTES:
        raise ValueError(f"a private key has {KEY_BYTES} bytes, not {len(seed)}")
    digest = hashlib.sha512(seed).digest()
    return int.from_bytes(digest[:32], "little") & ((1 << 254) - 8) | (1 << 254), digest[32:]


def _encode(point: _Point) -> bytes:
    """Return the 32 bytes of a point (section 5.1.2)."""
    inverse = pow(point[2], -1, _P)
    x, y = point[0] * inverse % _P, point[1] * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _decode(encoded: bytes) -> _Point | None:
    """Return the point that 32 bytes stand for (section 5.1.3), none when they stand for none or not canonically."""
    number = int.from_bytes(encoded, "little")
    y, sign = number & (2**255 - 1), number >> 255
    if y >= _P:
        return None
    x = _x_of(y, sign)
    return None if x is None else (x, y, 1, x * y % _P)


def _x_of(y: int, sign: int) -> int | None:
    numerator, denominator = (y * y - 1) % _P, (_D * y * y + 1) % _P
    # The candidate root of numerator/denominator, without a division (section 5.1.3, step 2).
    x = numerator * pow(denominator, 3, _P) * pow(numerator * pow(denominator, 7, _P), (_P - 5) // 8, _P) % _P
    error = denominator * x * x % _P
    if error == -numerator % _P:
        x = x * _ROOT_OF_MINUS_ONE % _P
    elif error != numerator:
        return None
    if x == 0 and sign:
        return None
    return _P - x if x & 1 != sign else x


def _add(p: _Point, q: _Point) -> _Point:
    """Section 5.1.4; also right when both are the same point."""
    a = (p[1] - p[0]) * (q[1] - q[0]) % _P
    b = (p[1] + p[0]) * (q[1] + q[0]) % _P
    c = 2 * p[3] * q[3] * _D % _P
    d = 2 * p[2] * q[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(factor: int, point: _Point) -> _Point:
    result = _NEUTRAL
    while factor:
        if factor & 1:
            result = _add(result, point)
        point = _add(point, point)
        factor >>= 1
    return result


def _same(p: _Point, q: _Point) -> bool:
    return (p[0] * q[2] - q[0] * p[2]) % _P == 0 and (p[1] * q[2] - q[1] * p[2]) % _P == 0


def _base() -> _Point:
    point = _decode((4 * pow(5, -1, _P) % _P).to_bytes(32, "little"))
    assert point is not None
    return point


_BASE = _base()
