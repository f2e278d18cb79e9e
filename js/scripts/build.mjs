/** Builds dist/: the package for servers and for browsers, its worker, its types, and what it takes from the Python package. */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

import { suspendable, withMemory, withSmallMemory } from "./wasm.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, "dist");
const python = process.env.PYTHON ?? [join(root, "../.venv/bin/python"), "python3"].find((path) => path === "python3" || existsSync(path));

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
const languages = execFileSync(python, [join(root, "scripts/languages.py")], { maxBuffer: 1 << 26, encoding: "utf8" });
// Modules that both packages need, translated.
const translated = join(root, "build/python");
rmSync(translated, { recursive: true, force: true });
execFileSync(python, ["-m", "translate", translated], {
  stdio: "inherit", env: { ...process.env, PYTHONPATH: join(root, "scripts") },
});
const { version } = JSON.parse(languages);
const own = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
if (own.version !== version) throw new Error(`package.json has version ${own.version}, the Python package ${version}`);
copyFileSync(join(root, "src/isolate-service-worker.js"), join(dist, "isolate-service-worker.js"));
copyFileSync(join(root, "../LICENSE"), join(root, "LICENSE"));
const notices = ["wasmoon", "@noble/hashes"].map((name) => {
  const folder = join(root, "node_modules", name);
  const file = ["LICENSE", "LICENSE.md"].map((each) => join(folder, each)).find(existsSync);
  return `${name}\n\n${file ? readFileSync(file, "utf8") : "MIT License\n"}`;
});
const notice = "Lua 5.4, inside lua.wasm\n\nCopyright (C) 1994-2023 Lua.org, PUC-Rio. MIT License: https://www.lua.org/license.html\n";
writeFileSync(join(dist, "THIRD-PARTY.txt"), [...notices, notice].join("\n----\n\n"));

const common = { bundle: true, target: "es2022", legalComments: "inline", sourcemap: true, logLevel: "error" };
// Parts of translated modules that only Python runs use these of its library, which src/python/ does not have.
const NOT_HERE = new Set(["importlib", "inspect", "keyword", "pathlib"]);
/** Bundles, and throws where a translated module uses what is not there. */
async function bundle(options) {
  const { warnings } = await build({ ...common, ...options });
  const missing = warnings.filter(({ text }) => !NOT_HERE.has(/^Import "(\w+)" will always/.exec(text)?.[1]));
  if (missing.length > 0) throw new Error(missing.map(({ text, location }) => `${location?.file}:${location?.line}: ${text}`).join("\n"));
}
// The worker's script is one classic script without imports: it is started from its text, which stands in languages.js.
await bundle({
  entryPoints: { worker: join(root, "src/worker/main.ts") }, outdir: dist, format: "iife", minify: true,
});
for (const [name, platform] of [["index", "server"], ["browser", "browser"]]) {
  await bundle({
    entryPoints: { [name]: join(root, "src/index.ts") }, outdir: dist, format: "esm", minify: true, splitting: true,
    chunkNames: `${name}-[name]-[hash]`, external: ["node:*"], plugins: [parts(platform)],
  });
}
const worker = readFileSync(join(dist, "worker.js"), "utf8").replace(/\n\/\/# sourceMappingURL=.*/, "");
const { prelude, ...given } = JSON.parse(languages);
const [lua, other] = await luaModules(prelude);
writeFileSync(join(dist, "lua.wasm"), lua);
const { runtime } = given.languages.rhai;
given.languages.rhai.runtime = true;
// What a snapshot depends on: Lua, what is loaded into it, and the worker that holds it.
const build_id = [languages, lua, worker].reduce((hash, part) => hash.update(part), createHash("sha256")).digest("hex").slice(0, 16);
const data = JSON.stringify({ build: build_id, wasm: lua.length, worker, ...given });
writeFileSync(join(dist, "languages.js"), `export default JSON.parse(${ascii(JSON.stringify(data))});\n`); // read faster than an object
writeFileSync(join(dist, "lua.js"), `export default "${lua.toString("base64")}";\n`);
writeFileSync(join(dist, "lua-suspendable.js"), `export default "${other.toString("base64")}";\n`);
writeFileSync(join(dist, "rhai.js"), `export default ${ascii(JSON.stringify(runtime))};\n`);

for (const project of [root, join(root, "scripts")]) {
  execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", project], { stdio: "inherit" });
}

/** What is found elsewhere: the languages in the file beside, and the part of the platform that the entry is for. */
function parts(platform) {
  return {
    name: "parts",
    setup(own) {
      own.onResolve({ filter: /^#(languages|lua|lua-suspendable|rhai)$/ }, ({ path }) => ({ path: `./${path.slice(1)}.js`, external: true }));
      own.onResolve({ filter: /^#python\// }, ({ path }) => ({ path: join(translated, path.slice("#python/".length)), sideEffects: false }));
      own.onResolve({ filter: /\/platform\/server\.js$/ }, () => ({ path: join(root, `src/platform/${platform}.ts`) }));
    },
  };
}

/** JSON text as a script that engines read at one byte for each character. */
function ascii(json) {
  return json.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Lua with the prelude in its memory: lua.wasm, and a module that can be suspended, whose memory is not shared. */
async function luaModules(prelude) {
  const outfile = join(root, "build/prepare.mjs");
  await build({ bundle: true, entryPoints: [join(root, "scripts/prepare.ts")], outfile, format: "esm", logLevel: "warning" });
  const { check, PREPARED, prepare } = await import(pathToFileURL(outfile).href);
  const lua = readFileSync(join(root, "node_modules/wasmoon/dist/glue.wasm"));
  const { bytes, prepared } = prepare(await WebAssembly.compile(withSmallMemory(lua, true)), prelude);
  const forms = [withSmallMemory(lua, true), withSmallMemory(suspendable(lua, join(root, "build")), false)];
  return Promise.all(forms.map(async (form) => {
    const made = withMemory(form, bytes, PREPARED, prepared);
    check(await WebAssembly.compile(made), prepared, readFileSync(join(root, "scripts/look_up.lua"), "utf8"));
    return made;
  }));
}
