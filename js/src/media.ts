/**
 * Media: images, audio and files that tools return and take. Scripts see a small handle, never the bytes.
 *
 * A handle is plain data: `{media = "moonbox://media/…", type = "image/png", size = 1234, name = "a.png", hash = "…"}`.
 * Its address cannot be guessed, and means something only in the Repl that was given the medium.
 */

import { sha256 } from "@noble/hashes/sha2.js";
import { UsageError } from "./errors.js";
import { checkOptions } from "./suggest.js";

export const PREFIX = "moonbox://media/";
const MIME_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]*\/[a-z0-9][a-z0-9!#$&^_.+-]*$/;
const UNKNOWN_TYPE = "application/octet-stream";
const LONGEST_NAME = 100;

export interface MediaOptions {
  data: Uint8Array | ArrayBuffer;
  /** Its MIME type; without one the name's ending or the first bytes decide. */
  type?: string;
  name?: string;
}

/** What a script has of a medium. */
export interface MediaHandle {
  media: string;
  type: string;
  size: number;
  name: string;
  hash: string;
}

/** Makes a Media: what a tool returns, alone or within other data, to give scripts an image, an audio clip or a file. */
export function media(options: MediaOptions): Media {
  checkOptions(options, ["data", "type", "name"]);
  return new Media(options.data, options.type, options.name);
}

/** An image, an audio clip or a file: its bytes, its MIME type and its name. */
export class Media {
  /** The JSON Schema of a parameter that takes a medium: the tool then gets a Media. */
  static readonly schema = {
    type: "object",
    description: "An image, audio clip or file, as a tool returned it.",
    properties: {
      media: { type: "string" },
      type: { type: "string" },
      size: { type: "integer" },
      name: { type: "string" },
      hash: { type: "string" },
    },
    required: ["media"],
  };

  readonly data: Uint8Array;
  readonly type: string;
  /** The name of a file: without folders, and safe to write. */
  readonly name: string;
  /** How handles name it. */
  readonly address: string;
  private digest = "";

  constructor(data: Uint8Array | ArrayBuffer, type = "", name = "") {
    if (!(data instanceof Uint8Array || data instanceof ArrayBuffer)) {
      throw new UsageError(`Media takes a Uint8Array or an ArrayBuffer, not ${data === null ? "null" : typeof data}`);
    }
    this.data = new Uint8Array(data); // of its own: the giver may change theirs
    this.type = (type || typeOfName(name) || typeOfData(this.data)).toLowerCase();
    if (!MIME_TYPE.test(this.type)) throw new UsageError(`'${type}' is not a MIME type such as image/png`);
    this.name = safeName(name) || defaultName(this.type);
    this.address = PREFIX + base64(crypto.getRandomValues(new Uint8Array(16))).replace(/[+/=]/g, (char) => ({ "+": "-", "/": "_" })[char] ?? "");
  }

  /** From the text form in which protocols send bytes; throws UsageError where it is not base64. */
  static fromBase64(text: string, type = "", name = ""): Media {
    return new Media(fromBase64(text), type, name);
  }

  /** What it is for a model. */
  get kind(): "image" | "audio" | "file" {
    const main = this.type.split("/")[0];
    return main === "image" || main === "audio" ? main : "file";
  }

  get size(): number {
    return this.data.length;
  }

  get base64(): string {
    return base64(this.data);
  }

  get dataUri(): string {
    return `data:${this.type};base64,${this.base64}`;
  }

  /** What scripts and records have of it. */
  handle(): MediaHandle {
    this.digest ||= Array.from(sha256(this.data).subarray(0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
    return { media: this.address, type: this.type, size: this.size, name: this.name, hash: this.digest };
  }

  /** JSON has the handle, so that no record gets the bytes by accident. */
  toJSON(): MediaHandle {
    return this.handle();
  }
}

export function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

function fromBase64(text: string): Uint8Array {
  // `atob` alone would skip blanks and take text without its padding.
  if (typeof text === "string" && text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)) {
    return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  }
  throw new UsageError("the data is not base64");
}

function safeName(name: string): string {
  const last = name.replaceAll("\\", "/").split("/").at(-1)!;
  const safe = last.replace(/[^\p{L}\p{N}_. ()-]/gu, "_").replace(/^[. ]+|[. ]+$/g, "");
  return Array.from(safe).slice(0, LONGEST_NAME).join("");
}

function defaultName(type: string): string {
  const main = type.split("/")[0]!;
  const ending = Object.keys(ENDINGS).find((each) => ENDINGS[each] === type);
  return (["image", "audio", "video"].includes(main) ? main : "file") + (ending === undefined ? "" : `.${ending}`);
}

function typeOfName(name: string): string {
  const ending = /\.([A-Za-z0-9]+)$/.exec(name)?.[1]?.toLowerCase() ?? "";
  return Object.hasOwn(ENDINGS, ending) ? ENDINGS[ending]! : "";
}

function typeOfData(data: Uint8Array): string {
  const start = String.fromCharCode(...data.subarray(0, 12));
  if (start.startsWith("RIFF")) return { WEBP: "image/webp", WAVE: "audio/wav" }[start.slice(8, 12)] ?? UNKNOWN_TYPE;
  return SIGNATURES.find(([signature]) => start.startsWith(signature))?.[1] ?? UNKNOWN_TYPE;
}

const SIGNATURES: [string, string][] = [
  ["\x89PNG\r\n\x1a\n", "image/png"], ["\xff\xd8\xff", "image/jpeg"], ["GIF8", "image/gif"], ["%PDF-", "application/pdf"],
  ["ID3", "audio/mpeg"], ["OggS", "audio/ogg"], ["fLaC", "audio/flac"],
];
/** The usual endings of names; the first of a type is the one that files get. */
const ENDINGS: Record<string, string> = {
  png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp", svg: "image/svg+xml",
  bmp: "image/bmp", tiff: "image/tiff", ico: "image/vnd.microsoft.icon", avif: "image/avif",
  mp3: "audio/mpeg", wav: "audio/wav", ogg: "audio/ogg", flac: "audio/flac", aac: "audio/aac", opus: "audio/opus",
  mp4: "video/mp4", webm: "video/webm", mov: "video/quicktime",
  pdf: "application/pdf", json: "application/json", zip: "application/zip", gz: "application/gzip", xml: "text/xml",
  txt: "text/plain", csv: "text/csv", html: "text/html", htm: "text/html", css: "text/css", md: "text/markdown", js: "text/javascript",
  bin: UNKNOWN_TYPE,
};
