"""When a client certificate ends, whoever made it, and whatever else is in the file."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from fencer.cluster.certificates import LARGEST_BYTES, end_of

KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(ends, organisations=()):
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organisations]
    subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, "fencer")])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(KEY.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(ends, datetime(2026, 1, 1, tzinfo=UTC)) - timedelta(days=1))
        .not_valid_after(ends)
        .sign(KEY, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )


@given(
    st.datetimes(datetime(1951, 1, 1), datetime(9999, 12, 31, 23, 59, 59)),  # noqa: DTZ001 - made UTC below
    st.lists(st.text("abc", min_size=1, max_size=64), max_size=12),
)
def test_the_end_is_read_in_both_forms_of_a_time_and_behind_names_of_any_length(moment, organisations):
    ends = moment.replace(tzinfo=UTC, microsecond=0)
    assert end_of(certificate(ends, organisations)) == ends


@pytest.mark.parametrize("year", [1950, 1999, 2000, 2049, 2050, 9999])
def test_the_century_is_that_of_the_standard(year):
    """Two digits up to 2049, four from then on."""
    ends = datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert end_of(certificate(ends)) == ends


def test_of_a_chain_the_first_counts_and_words_around_it_do_not():
    own, ca = (datetime(year, 5, 6, tzinfo=UTC) for year in (2027, 2036))
    text = b"subject=fencer\r\n" + certificate(own).replace(b"\n", b"\r\n") + certificate(ca)
    assert end_of(text) == own


WHOLE = certificate(datetime(2027, 5, 6, tzinfo=UTC))


@pytest.mark.parametrize(
    "pem",
    [
        b"",
        b"\xff\xfe",
        WHOLE.replace(b"BEGIN CERTIFICATE", b"BEGIN PRIVATE KEY"),
        WHOLE[: len(WHOLE) // 2],
        b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\n=\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\nMIAwAA==\n-----END CERTIFICATE-----\n",
        b"x" * LARGEST_BYTES + WHOLE,
    ],
)
def test_what_is_no_certificate_tells_nothing(pem):
    assert end_of(pem) is None


@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=4))
def test_one_that_was_damaged_is_no_traceback(place, junk):
    seen = end_of(WHOLE[:place] + junk + WHOLE[place + len(junk) :])
    assert seen is None or seen.tzinfo is UTC
