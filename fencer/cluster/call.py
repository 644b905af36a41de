"""One request through the client's own transport, which brings TLS, proxies and credentials."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from fencer.cluster.requests import Request

_AUTH = ["BearerToken"]
"""The client's name for whatever the kubeconfig lets us in with, beside a certificate."""
_SUCCESS = range(200, 300)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, whatever its status.

    Attributes:
        status: HTTP status.
        body: As it came.
        headers: By name, in any case of letters.
    """

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def succeeded(self) -> bool:
        """Whether the server did as it was asked."""
        return self.status in _SUCCESS

    @property
    def date(self) -> str | None:
        """The server's clock, as it came."""
        return self.headers.get("Date")


def call(client: Any, request: Request, timeouts: tuple[float, float]) -> Reply:
    """Send a request once.

    Args:
        client: The client's `ApiClient`.
        request: What is asked.
        timeouts: For connecting, and for the answer, in seconds.

    Raises:
        kubernetes.client.exceptions.OpenApiException: TLS failed.
        kubernetes.config.ConfigException: there are no credentials to ask with.
        urllib3.exceptions.HTTPError, http.client.HTTPException, OSError: no answer came.
    """
    answer = _sent(client, request, timeouts)
    return answer if isinstance(answer, Reply) else _reply(answer)


def stream(client: Any, request: Request, timeouts: tuple[float, float]) -> Any:
    """Send a request once, and return urllib3's response, its body not read; or the `Reply` that refuses.

    Arguments and errors as in `call`; the second timeout is for each piece of the answer.
    """
    answer = _sent(client, request, timeouts)
    if isinstance(answer, Reply) or answer.status in _SUCCESS:
        return answer
    with closing(answer):
        return _reply(answer)


def _sent(client: Any, request: Request, timeouts: tuple[float, float]) -> Any:
    """Have it sent; of a token that cannot be, nothing is shown."""
    try:
        return _sent_as_is(client, request, timeouts)
    except ValueError as error:
        if not str(error).startswith("Invalid header value"):
            raise
        from kubernetes.config import ConfigException  # noqa: PLC0415 - heavy

        raise ConfigException("the token has a line break, or another character that no token has") from None


def _sent_as_is(client: Any, request: Request, timeouts: tuple[float, float]) -> Any:
    """Return urllib3's response; or a `Reply`, which a client before 36.0 makes of a refusal.

    Source: kubernetes-client/python, ``ApiClient.call_api``: its arguments changed with 36.0.
    """
    if not hasattr(client, "param_serialize"):
        return _call_before_36(client, request, timeouts)
    arguments = client.param_serialize(
        request.method,
        request.path,
        query_params=list(request.query.items()),
        header_params=request.headers,
        body=request.body,
        auth_settings=_AUTH,
    )
    return client.call_api(*arguments, _request_timeout=timeouts).response


def _call_before_36(client: Any, request: Request, timeouts: tuple[float, float]) -> Any:
    from kubernetes.client.exceptions import ApiException  # noqa: PLC0415 - heavy

    try:
        return client.call_api(
            request.path,
            request.method,
            query_params=list(request.query.items()),
            header_params=request.headers,
            body=request.body,
            auth_settings=_AUTH,
            _return_http_data_only=True,
            _preload_content=False,
            _request_timeout=timeouts,
        )
    except ApiException as error:
        if not error.status:
            raise
        body = error.body or b""
        return Reply(error.status, body.encode() if isinstance(body, str) else body, error.headers or {})


def _reply(response: Any) -> Reply:
    return Reply(response.status, response.data, response.headers)
