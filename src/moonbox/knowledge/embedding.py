"""Embedders: what turns texts into vectors, over HTTP or in this process."""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from moonbox.config.reader import positive, settings_model
from moonbox.errors import ConfigError, MissingExtra
from moonbox.knowledge.records import EmbeddingError
from moonbox.net.addresses import InvalidURL, NetError, parse_target
from moonbox.net.client import Client, PublicAddresses, Request, Response
from moonbox.retry import retry_after

MAX_ANSWER = 64_000_000
LONGEST_PAUSE = 30.0
_MOST_TOKENS, _BATCH = 4096, 256
RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


@runtime_checkable
class Embedder(Protocol):
    """A model that turns texts into vectors; texts that mean the same are near to each other."""

    @property
    def name(self) -> str:
        """Identifies the model of a vector. If the name changes, all vectors are created again."""
        ...

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> list[list[float]]:
        """One vector for each text, all of the same length; raises EmbeddingError."""
        ...


@settings_model
class OpenAIEmbeddings:
    """`POST {url}/embeddings`: OpenAI, Ollama, llama.cpp, vLLM, LM Studio, text-embeddings-inference and others."""

    url: str
    """The address up to and including the version, as in http://localhost:11434/v1."""
    model: str
    """The model's name at that endpoint."""
    key_env: str | None = None
    """The environment variable that holds the key; not needed for servers without keys."""
    dimensions: int | None = None
    """Ask the model for vectors of this length, where it supports that."""
    batch: int = 64
    """Texts in one request."""
    timeout: float = 30.0
    """Seconds for one request."""
    attempts: int = 4
    """How many times a request is tried before it fails."""
    document_prefix: str = ""
    """Put before each text; some models need it (`search_document: `)."""
    query_prefix: str = ""
    """Put before each query; some models need it (`search_query: `)."""

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ConfigError(f"url must be an http or https address, not {self.url!r}")
        for name in ("dimensions", "batch", "timeout", "attempts"):
            positive(name, getattr(self, name))


class OpenAIEmbedder:
    """An embedder that uses such an endpoint. `pause` waits between attempts."""

    def __init__(self, options: OpenAIEmbeddings, *, pause: Callable[[float], None] = time.sleep) -> None:
        self.options, self._pause = options, pause
        self._lock = threading.Lock()
        self._kept: tuple[int, Client] | None = None

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

    def _client(self) -> Client:
        """One client for all requests of a process: making one can cost more than a request.

        Private addresses are allowed, because the server is configured and may be on this machine.
        """
        with self._lock:
            if self._kept is None or self._kept[0] != os.getpid():
                client = Client(PublicAddresses(allow_private=True), extra="semantic", purpose="embeddings over HTTP")
                self._kept = (os.getpid(), client)
            return self._kept[1]

    def _headers(self) -> tuple[tuple[str, bytes], ...]:
        headers = [("user-agent", b"moonbox"), ("content-type", b"application/json"), ("accept", b"application/json")]
        if self.options.key_env is not None:
            key = os.environ.get(self.options.key_env, "").strip()  # one that a file filled may end with a line break
            if not key:
                raise ConfigError(f"the environment variable {self.options.key_env} (embeddings.key_env) is not set")
            headers.append(("authorization", f"Bearer {key}".encode()))
        return tuple(headers)

    def _request(self, client: Client, texts: list[str]) -> list[list[float]]:
        body: dict[str, Any] = {"model": self.options.model, "input": texts, "encoding_format": "float"}
        if self.options.dimensions is not None:
            body["dimensions"] = self.options.dimensions
        address = self.options.url.rstrip("/") + "/embeddings"
        try:
            target = parse_target(address)
        except InvalidURL as error:
            raise ConfigError(f"embeddings.url is not a valid URL: {error}") from None
        request = Request(target, "POST", self._headers(), json.dumps(body).encode())
        for attempt in range(1, self.options.attempts + 1):
            wait = min(LONGEST_PAUSE, 0.5 * 2.0**attempt)
            try:
                response = client.send(request, timeout=self.options.timeout, max_bytes=MAX_ANSWER, redirects=0)
            except NetError as error:
                failure = f"{address} did not respond: {error}"
                if error.code == "too_large":
                    raise EmbeddingError(f"{address} responded with more than {MAX_ANSWER:,} bytes") from None
            else:
                if response.status == 200:
                    return _vectors(response, len(texts), address)
                failure = f"{address} responded with status {response.status}: {_excerpt(response)}"
                if response.status not in RETRIED:
                    raise EmbeddingError(failure)
                asked = retry_after(response.headers.get("retry-after", ""), time.time())
                wait = wait if asked is None else min(LONGEST_PAUSE, asked)
            if attempt < self.options.attempts:
                self._pause(wait)
        raise EmbeddingError(f"{failure} ({self.options.attempts} attempts)")


class LocalEmbedder:
    """Static word vectors (256 dimensions, mostly English) from the wheel of WordLlama, on the CPU.

    A text's vector is the mean of its tokens' vectors: no neural network runs, and nothing is downloaded.
    """

    name = "wordllama-l2-supercat-256"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: tuple[Any, Any, Any] | None = None

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> list[list[float]]:
        numpy, tokenizer, table = self._loaded()
        rows = numpy.zeros((len(texts), table.shape[1]), numpy.float32)
        for start in range(0, len(texts), _BATCH):
            encodings = tokenizer.encode_batch(list(texts[start : start + _BATCH]), add_special_tokens=False)
            for row, encoding in zip(rows[start:], encodings, strict=False):
                if encoding.ids:
                    mean = table[encoding.ids].mean(axis=0)
                    row[:] = mean / (numpy.linalg.norm(mean) or 1.0)
        listed: list[list[float]] = rows.tolist()
        return listed

    def warm(self) -> None:
        """Load the model now, so that the first query does not wait for it."""
        self._loaded()

    def _loaded(self) -> tuple[Any, Any, Any]:
        with self._lock:  # the first query and `warm` may come from two threads
            if self._model is None:
                self._model = _static_model()
            return self._model


def _static_model() -> tuple[Any, Any, Any]:
    """The module numpy, the tokenizer and the table of token vectors; all are only read, from any thread."""
    package = importlib.util.find_spec("wordllama")  # found, not imported: only its data is used
    try:
        if package is None or not package.submodule_search_locations:
            raise ImportError
        numpy: Any = importlib.import_module("numpy")
        tensors: Any = importlib.import_module("safetensors.numpy")
        tokenizers: Any = importlib.import_module("tokenizers")
    except ImportError:
        raise MissingExtra("wordllama", "local-embeddings", "the local embedding model") from None
    folder = Path(package.submodule_search_locations[0])
    try:
        weights = tensors.load_file(folder / "weights" / "l2_supercat_256.safetensors")
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    except Exception as problem:
        raise EmbeddingError(f"the model in the package 'wordllama' cannot be loaded: {problem}") from problem
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MOST_TOKENS)
    return numpy, tokenizer, next(iter(weights.values())).astype(numpy.float32)


def _vectors(response: Response, wanted: int, address: str) -> list[list[float]]:
    """The vectors of a response in the order of the texts, checked: the server is not trusted."""
    try:
        rows = sorted(json.loads(response.body)["data"], key=lambda row: row["index"])
        vectors = [[float(number) for number in row["embedding"]] for row in rows]
        positions = [row["index"] for row in rows]
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise EmbeddingError(f"{address} did not respond in OpenAI's format: {_excerpt(response)}") from None
    if positions != list(range(wanted)):
        raise EmbeddingError(f"{address} returned {len(vectors)} vectors for {wanted} texts")
    if len({len(vector) for vector in vectors}) > 1 or not all(vectors):
        raise EmbeddingError(f"{address} returned vectors of different lengths")
    if not all(math.isfinite(number) for vector in vectors for number in vector):
        raise EmbeddingError(f"{address} returned a number that is not finite")
    return vectors


def _excerpt(response: Response) -> str:
    return " ".join(response.body[:800].decode("utf-8", "replace")[:200].split()) or "(empty response)"
