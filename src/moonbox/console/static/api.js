// The HTTP API, as this page uses it: same origin, JSON, and the page's key in a header.

import { parse, stringify } from "./json.js";

const KEY = /name="moonbox-key" content="([\da-f]+)"/;
let pageKey = document.querySelector('meta[name="moonbox-key"]').content;

export class ApiError extends Error {
  constructor(status, { code = "failed", message = "the request failed", ...more } = {}) {
    super(message);
    Object.assign(this, { status, code, ...more });
  }
}

/** The key belongs to the sign-in: after a new one, in this tab or another, the page takes that one's. Whether it is not `used`. */
async function renewKey(used) {
  const text = await fetch("/console/approvals", { redirect: "error" }).then((answer) => answer.text(), () => "");
  pageKey = KEY.exec(text)?.[1] ?? pageKey;
  return pageKey !== used;
}

/** The answer to a request; `signal` gives it up. */
export async function request(method, path, body, signal = null) {
  const used = pageKey;
  const headers = { Accept: "application/json", "X-Moonbox-Key": used };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      credentials: "same-origin",
      redirect: "error",
      signal,
      body: body === undefined ? undefined : stringify(body),
    });
  } catch {
    throw new ApiError(0, { code: "unreachable", message: "the server does not answer; is moonbox still running?" });
  }
  if (response.status === 204) return null;
  const data = await response.text().then(parse).catch(() => ({}));
  if (response.status === 401) {
    if (method !== "GET" && (await renewKey(used))) return request(method, path, body);
    document.dispatchEvent(new Event("signed-out"));
    throw new ApiError(401, { code: "signed_out", message: "your sign-in has ended; sign in again" });
  }
  if (!response.ok) throw new ApiError(response.status, data.error);
  return data;
}

export const get = (path) => request("GET", path);
export const post = (path, body = {}) => request("POST", path, body);

/** A path whose parts may hold any character. */
export const path = (...parts) => "/" + parts.map((part) => encodeURIComponent(part)).join("/");

/** A query string of what is set. */
export function query(values) {
  const set = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return set.length ? "?" + new URLSearchParams(set) : "";
}
