"""The settings of a server."""

from pydantic import Field, model_validator

from regard.config import Config

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ServerSettings(Config):
    """Where a server listens, and how much it accepts."""

    host: str = Field("127.0.0.1", description="address to listen on; another than loopback needs an API key")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on; 0: a free one")
    api_key: str | None = Field(None, description="what clients send as a bearer token; none: no key is asked for")
    max_body_bytes: int = Field(2_000_000, ge=1, description="largest body of a request")
    header_seconds: float = Field(10, gt=0, description="how long the headers of a request may take")
    body_seconds: float = Field(20, gt=0, description="how long the body of a request may take")
    request_seconds: float = Field(300, gt=0, description="how long a request may wait and compute together")
    drain_seconds: float = Field(30, ge=0, description="after SIGTERM, how long running requests may take to end")
    allowed_hosts: tuple[str, ...] = Field((), description="names in the Host header besides loopback and `host`")
    max_upload_bytes: int = Field(256 << 20, ge=1, description="largest trace file that the page opens")
    max_connections: int = Field(1000, ge=1, description="requests at once; more are refused")
    max_queue: int = Field(128, ge=1, description="requests of a model that may wait; more are refused")
    max_running: int = Field(64, ge=1, description="texts of a language model that are generated together")
    kv_cache_megabytes: int = Field(2048, ge=1, description="memory of a language model's KV cache")
    trace_megabytes: int = Field(256, ge=1, description="memory for the traces that clients may still fetch")

    @model_validator(mode="after")
    def _check_key(self) -> "ServerSettings":
        if self.host not in LOOPBACK and not self.api_key:
            raise ValueError(
                f"host={self.host} is reached from other machines and there is no API key; set REGARD_API_KEY, "
                "or listen on 127.0.0.1"
            )
        return self
