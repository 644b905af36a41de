"""Where metrics, health and the status page are served: plain values."""

from __future__ import annotations

from dataclasses import dataclass

LOOPBACK, PORT = "127.0.0.1", 9721


@dataclass(frozen=True, slots=True)
class WebSettings:
    """Where fencer listens.

    Attributes:
        host: The address.
        port: The port.
        names: Further names under which a browser may ask, besides addresses and ``localhost``: of a proxy
            in front. Others are refused, so that no web page elsewhere can read this one through a name of
            its own.
    """

    host: str = LOOPBACK
    port: int = PORT
    names: tuple[str, ...] = ()

    @property
    def listen(self) -> str:
        """The place, as the configuration has it: ``127.0.0.1:9721``, ``[::1]:9721``."""
        return self.at(self.port)

    def at(self, port: int) -> str:
        """Return the place with another port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{port}"

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can ask."""
        return self.host == "::1" or self.host.startswith("127.")
