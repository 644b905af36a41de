"""Which server to trust as the API server: any that the kubeconfig's own CA signed, as kubectl does.

Many clusters' CAs lack what RFC 5280 asks for (key identifiers, a key usage): those of older installers, and
those made by hand. Python 3.13 calls that invalid (`ssl.VERIFY_X509_STRICT`), and urllib3 does as Python.
Where a CA was named on purpose, the signature, the names and the dates count.
"""

from __future__ import annotations

import re
import ssl
import warnings
from typing import Any
from urllib.parse import urlsplit

from urllib3.connection import HTTPSConnection
from urllib3.connectionpool import HTTPSConnectionPool
from urllib3.exceptions import InsecureRequestWarning
from urllib3.util import create_urllib3_context

_REFUSED = re.compile(r"certificate verify failed: (?P<why>.*?)\.?( \(_ssl\.c:\d+\))?$")


class _Connection(HTTPSConnection):
    """Verifies without the formalities. Its CA is read again each time: the file may have been replaced."""

    def connect(self) -> None:
        """Connect with a context of its own, into which urllib3 loads CA and client certificate."""
        self.ssl_context = create_urllib3_context(verify_flags=ssl.VERIFY_X509_PARTIAL_CHAIN)
        super().connect()


class _Connections(HTTPSConnectionPool):
    ConnectionCls = _Connection


def believe_own_ca(api: Any) -> None:
    """Have a client verify its server as Python before 3.13 did, where its configuration names a CA.

    Args:
        api: The client, before its first request.
    """
    if api.configuration.verify_ssl and api.configuration.ssl_ca_cert:
        pools = api.rest_client.pool_manager
        pools.pool_classes_by_scheme = {**pools.pool_classes_by_scheme, "https": _Connections}


def warn_no_more_of(configuration: Any) -> None:
    """Have urllib3 not warn, at each request, of one server that is not verified: that was wanted.

    Args:
        configuration: The client's.
    """
    if not configuration.verify_ssl:
        host = re.escape(urlsplit(configuration.host).hostname or "")
        warnings.filterwarnings(
            "ignore",
            rf"Unverified HTTPS request is being made to host '\[?{host}\]?'",
            InsecureRequestWarning,
        )


def plainly(text: str) -> str:
    """Return why no answer came, with less of the client's own words where it is for a certificate. Pure."""
    refused = _REFUSED.search(text)
    if refused is None:
        return text
    why = refused["why"]
    hint = (
        ". Ask by a name or address that it bears; k3s adds one with --tls-san" if "mismatch" in why else ""
    )
    return f"its certificate is not trusted: {why}{hint}"
