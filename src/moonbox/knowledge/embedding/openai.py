"""Embeddings from any endpoint that speaks OpenAI's wire format."""

from __future__ import annotations

import math
import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from moonbox.config.reader import CLOSED, positive
from moonbox.errors import ConfigError, MissingExtra
from moonbox.knowledge.errors import EmbeddingError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import httpx

__all__ = ["OpenAIEmbedder", "OpenAIEmbeddings"]

MAX_ANSWER = 64_000_000
LONGEST_PAUSE = 30.0
RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, kw_only=True)
class OpenAIEmbeddings:
    """`POST {url}/embeddings`: OpenAI, Ollama, llama.cpp, vLLM, LM Studio, text-embeddings-inference and others."""

    __pydantic_config__: ClassVar = CLOSED

    url: str
    """The address up to and including the version, as in http://localhost:11434/v1."""
    model: str
    """The model's name at that endpoint."""
    key_env: str | None = None
    """The environment variable that holds the key; none for servers that ask for none."""
    dimensions: int | None = None
    """Asks the model for shorter vectors, where it can give them."""
    batch: int = 64
    """Texts in one request."""
    timeout: float = 30.0
    """Seconds for one request."""
    attempts: int = 4
    """How often a request is made before it counts as failed."""
    document_prefix: str = ""
    """What some models want before each text (`search_document: `)."""
    query_prefix: str = ""
    """What some models want before each query (`search_query: `)."""

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ConfigError(f"url must be an http or https address, not {self.url!r}")
        positive("dimensions", self.dimensions)
        positive("batch", self.batch)
        positive("timeout", self.timeout)
        positive("attempts", self.attempts)


class OpenAIEmbedder:
    """The embedder over such an endpoint. `pause` waits between attempts."""

    def __init__(self, options: OpenAIEmbeddings, *, pause: Callable[[float], None] = time.sleep) -> None:
        self.options, self._pause = options, pause
        self._lock = threading.Lock()
        self._kept: tuple[int, httpx.Client] | None = None

    @property
    def name(self) -> str:
        options = self.options
        size = f"@{options.dimensions}" if options.dimensions else ""
        prefix = f" after {options.document_prefix!r}" if options.document_prefix else ""
        return f"{options.model}{size}{prefix}"

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> list[list[float]]:
        prefix = self.options.query_prefix if kind == "query" else self.options.document_prefix
        vectors: list[list[float]] = []
        client, size = self._client(), self.options.batch
        for start in range(0, len(texts), size):
            vectors += self._request(client, [prefix + text for text in texts[start : start + size]])
        return vectors

    def close(self) -> None:
        """Close the connections that are kept for the next request."""
        with self._lock:
            if self._kept is not None and self._kept[0] == os.getpid():
                self._kept[1].close()
            self._kept = None

    def _client(self) -> httpx.Client:
        """One client for all requests of a process: a new one costs more than many a request."""
        with self._lock:
            if self._kept is None or self._kept[0] != os.getpid():
                self._kept = (os.getpid(), self._new_client())
            return self._kept[1]

    def _new_client(self) -> httpx.Client:
        try:
            import httpx
        except ImportError:
            raise MissingExtra("httpx", "semantic", "embeddings over HTTP") from None
        headers = {"user-agent": "moonbox"}
        if self.options.key_env is not None:
            key = os.environ.get(self.options.key_env)
            if not key:
                raise ConfigError(f"the environment variable {self.options.key_env} (embeddings.key_env) is not set")
            headers["authorization"] = f"Bearer {key}"
        return httpx.Client(headers=headers, timeout=self.options.timeout, follow_redirects=False)

    def _request(self, client: httpx.Client, texts: list[str]) -> list[list[float]]:
        import httpx

        body: dict[str, Any] = {"model": self.options.model, "input": texts, "encoding_format": "float"}
        if self.options.dimensions is not None:
            body["dimensions"] = self.options.dimensions
        address = self.options.url.rstrip("/") + "/embeddings"
        for attempt in range(1, self.options.attempts + 1):
            wait = min(LONGEST_PAUSE, 0.5 * 2.0**attempt)
            try:
                response = client.post(address, json=body)
            except httpx.TransportError as error:
                failure = f"{address} did not answer: {error or type(error).__name__}"
            except httpx.InvalidURL as error:
                raise ConfigError(f"embeddings.url is not an address: {error}") from None
            else:
                if response.status_code == 200:
                    return _vectors(response, len(texts), address)
                failure = f"{address} answered {response.status_code}: {_excerpt(response)}"
                if response.status_code not in RETRIED:
                    raise EmbeddingError(failure)
                wait = _retry_after(response, wait)
            if attempt < self.options.attempts:
                self._pause(wait)
        raise EmbeddingError(f"{failure} ({self.options.attempts} attempts)")


def _vectors(response: httpx.Response, wanted: int, address: str) -> list[list[float]]:
    """The answer's vectors in the order of the texts, checked: the server is a stranger."""
    if len(response.content) > MAX_ANSWER:
        raise EmbeddingError(f"{address} answered with more than {MAX_ANSWER:,} bytes")
    try:
        rows = sorted(response.json()["data"], key=lambda row: row["index"])
        vectors = [[float(number) for number in row["embedding"]] for row in rows]
        positions = [row["index"] for row in rows]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise EmbeddingError(f"{address} did not answer in OpenAI's format: {_excerpt(response)}") from None
    if positions != list(range(wanted)):
        raise EmbeddingError(f"{address} answered with {len(vectors)} vectors for {wanted} texts")
    if len({len(vector) for vector in vectors}) > 1 or not all(vectors):
        raise EmbeddingError(f"{address} answered with vectors of different lengths")
    if not all(math.isfinite(number) for vector in vectors for number in vector):
        raise EmbeddingError(f"{address} answered with a number that is not finite")
    return vectors


def _excerpt(response: httpx.Response) -> str:
    return " ".join(response.text[:200].split()) or "nothing"


def _retry_after(response: httpx.Response, otherwise: float) -> float:
    try:
        return min(LONGEST_PAUSE, max(0.0, float(response.headers.get("retry-after", ""))))
    except ValueError:
        return otherwise
