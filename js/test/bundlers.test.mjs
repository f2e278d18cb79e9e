/**
 * Apps made with bundlers and no settings: each is built, and run in Chromium or in Node.
 *
 * With MOONBOX_LONG all of them; otherwise esbuild and the current Vite.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ISOLATED, missing, openPage } from "./chromium.mjs";

const js = fileURLToPath(new URL("..", import.meta.url));
const apps = fileURLToPath(new URL("./apps/", import.meta.url));
const LONG = process.env.MOONBOX_LONG ? false : "only in a long run: make soak";
const uninstalled = (folder = apps) => !existsSync(join(folder, "node_modules")) && "the bundlers are not installed: make js-package";
const { version } = JSON.parse(readFileSync(join(js, "package.json"), "utf8"));
const TOLD = [version, ["Hello, you", 42], "time", "ToolDefinitionError"];
const page = (skip = false) => ({ skip: missing || uninstalled() || skip });

describe("apps", { timeout: process.env.MOONBOX_LONG ? 900_000 : 300_000 }, () => {
  let app;
  before(() => {
    app = mkdtempSync(join(tmpdir(), "moonbox-app-"));
    cpSync(join(apps, "src"), app, { recursive: true });
    writeFileSync(join(app, "package.json"), '{"name": "app", "private": true, "type": "module"}\n');
    mkdirSync(join(app, "node_modules"));
    const [{ filename }] = JSON.parse(npm(["pack", "--json", "--silent", "--pack-destination", app], js));
    execFileSync("tar", ["-xzf", join(app, filename), "-C", join(app, "node_modules")]);
    execFileSync("mv", [join(app, "node_modules/package"), join(app, "node_modules/moonbox")]);
  });
  before(() => {
    const example = [...readFileSync(join(js, "README.md"), "utf8").matchAll(/```js\n([^`]*(?:`[^`]+`[^`]*)*)```/g)].map(([, code]) => code);
    mkdirSync(join(app, "readme"));
    const told = 'let tell;\nglobalThis.told = new Promise((done) => (tell = done));\nif (typeof document === "undefined") told.then(console.log);\n';
    writeFileSync(join(app, "readme/main.mjs"), `${told}${example[1]}\ntell(done.value);\n`);
    writeFileSync(join(app, "readme/index.html"), '<!doctype html><script type="module" src="./main.mjs"></script>');
  });
  after(() => rmSync(app, { recursive: true, force: true }));

  test("esbuild, for a page", page(), async () => {
    esbuild(app, "page.js", "esbuild/page.js", "--minify");
    writeFileSync(join(app, "esbuild/index.html"), '<!doctype html><script src="./page.js"></script>');
    assert.deepEqual(await toldBy(join(app, "esbuild")), TOLD);
  });

  for (const format of ["cjs", "esm"]) {
    test(`esbuild --platform=node --format=${format}`, { skip: uninstalled() }, () => {
      const file = `alone-${format}/server.${format === "cjs" ? "cjs" : "mjs"}`;
      esbuild(app, "server.js", file, "--platform=node", `--format=${format}`, "--minify");
      assert.deepEqual(JSON.parse(execFileSync(process.execPath, [join(app, file)], { cwd: tmpdir(), encoding: "utf8" })), TOLD);
    });
  }

  test("the README's example in Node", () => {
    assert.equal(execFileSync(process.execPath, [join(app, "readme/main.mjs")], { encoding: "utf8" }), "75\n");
  });

  test("the README's example with esbuild, as the README says", page(), async () => {
    esbuild(app, "readme/main.mjs", "readme-esbuild/page.js", "--format=esm");
    writeFileSync(join(app, "readme-esbuild/index.html"), '<!doctype html><script type="module" src="page.js"></script>');
    assert.equal(await toldBy(join(app, "readme-esbuild")), 75);
    esbuild(app, "readme/main.mjs", "readme-esbuild/main.mjs", "--platform=node", "--format=esm");
    assert.equal(execFileSync(process.execPath, [join(app, "readme-esbuild/main.mjs")], { encoding: "utf8" }), "75\n");
  });

  for (const [name, skip, settings] of [["vite", false, {}], ["vite5", LONG, { target: "es2022" }]]) {
    test(`the README's example with ${name}, as the README says`, page(skip), async () => {
      const { build } = await import(pathToFileURL(createRequire(join(apps, "package.json")).resolve(name)).href.replace("index.cjs", "dist/node/index.js"));
      const [root, outDir] = [join(app, "readme"), join(app, `readme-${name}`)];
      await build({ root, logLevel: "error", build: { outDir, ...settings } });
      assert.equal(await toldBy(outDir), 75);
    });
  }

  test("the README's example with webpack", { skip: missing || uninstalled() || LONG }, async () => {
    execFileSync(process.execPath, [join(apps, "webpack.mjs"), app, "readme/main.mjs", "web", "readme-webpack"], { encoding: "utf8" });
    writeFileSync(join(app, "readme-webpack/index.html"), '<!doctype html><script src="readme/main.mjs"></script>');
    assert.equal(await toldBy(join(app, "readme-webpack")), 75);
  });

  for (const [name, skip] of [["vite", false], ["vite5", LONG]]) {
    test(`${name}, built`, page(skip), async () => {
      const { build } = await import(pathToFileURL(createRequire(join(apps, "package.json")).resolve(name)).href.replace("index.cjs", "dist/node/index.js"));
      await build({ root: app, logLevel: "error", build: { outDir: join(app, name) } });
      assert.deepEqual(await toldBy(join(app, name)), TOLD);
    });
    test(`${name}, served while it is developed`, page(skip), async () => {
      const { createServer } = await import(pathToFileURL(createRequire(join(apps, "package.json")).resolve(name)).href.replace("index.cjs", "dist/node/index.js"));
      const server = await createServer({ root: app, cacheDir: join(app, `${name}-cache`), logLevel: "error", server: { host: "localhost", headers: ISOLATED_WITHOUT_POLICY } });
      try {
        await server.listen();
        assert.deepEqual(await toldBy(null, server.resolvedUrls.local[0]), TOLD);
      } finally {
        await server.close();
      }
    });
  }

  for (const target of ["web", "node"]) {
    test(`webpack, for ${target}`, { skip: missing || uninstalled() || LONG }, async () => {
      const [entry, output] = [target === "web" ? "page.js" : "server.js", `webpack-${target}`];
      execFileSync(process.execPath, [join(apps, "webpack.mjs"), app, entry, target, output], { encoding: "utf8" });
      if (target === "node") {
        writeFileSync(join(app, output, "package.json"), "{}"); // webpack writes CommonJS
        assert.deepEqual(JSON.parse(execFileSync(process.execPath, [join(app, output, entry)], { cwd: tmpdir(), encoding: "utf8" })), TOLD);
      } else {
        writeFileSync(join(app, output, "index.html"), '<!doctype html><script src="./page.js"></script>');
        assert.deepEqual(await toldBy(join(app, output)), TOLD);
      }
    });
  }

  for (const [name, ...flags] of [["Turbopack"], ["webpack", "--webpack"]]) {
    const next = join(apps, "next");
    test(`Next with ${name}, on the server`, { skip: uninstalled(next) || LONG }, () => {
      const folder = join(app, `next-${name}`);
      mkdirSync(join(folder, "app/told"), { recursive: true });
      for (const file of ["story.js"]) cpSync(join(app, file), join(folder, "app/told", file));
      writeFileSync(join(folder, "package.json"), '{"name": "site", "private": true}\n');
      writeFileSync(join(folder, "app/layout.js"), "export default ({ children }) => <html><body>{children}</body></html>;\n");
      writeFileSync(join(folder, "app/page.js"), "export default () => <p>moonbox</p>;\n");
      writeFileSync(join(folder, "app/told/route.js"), 'import { story } from "./story.js";\nexport const dynamic = "force-static";\nexport const GET = async () => Response.json(await story());\n');
      cpSync(join(next, "node_modules"), join(folder, "node_modules"), { recursive: true, verbatimSymlinks: true });
      cpSync(join(app, "node_modules/moonbox"), join(folder, "node_modules/moonbox"), { recursive: true });
      const env = { ...process.env, NEXT_TELEMETRY_DISABLED: "1" };
      execFileSync(process.execPath, ["node_modules/next/dist/bin/next", "build", ...flags], { cwd: folder, encoding: "utf8", env });
      assert.deepEqual(JSON.parse(readFileSync(join(folder, ".next/server/app/told.body"), "utf8")), TOLD);
    });
  }

  test("a page whose policy refuses Blobs serves the worker itself", page(), async () => {
    const told = await toldBy(js, "/test/driver.html", {
      policy: "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'",
      tell: async () => {
        const { Sandbox } = await import("/dist/browser.js");
        const results = [];
        for (const options of [{}, { workerUrl: "/dist/worker.js" }]) {
          const box = new Sandbox(options);
          results.push(await box.run("return 6 * 7").then((run) => run.value, (problem) => problem.message));
          await box.close();
        }
        return results;
      },
    });
    assert.match(told[0], /worker-src blob:.*workerUrl/);
    assert.equal(told[1], 42);
  });

  test("a CommonJS module requires the package", { skip: !process.features.require_module && "this Node cannot require ES modules" }, () => {
    writeFileSync(join(app, "old.cjs"), 'const { Sandbox } = require("moonbox");\nconst box = new Sandbox();\nbox.run("return 6 * 7").then((run) => console.log(run.value, require("moonbox/package.json").name)).finally(() => box.close());\n');
    assert.equal(execFileSync(process.execPath, [join(app, "old.cjs")], { encoding: "utf8" }), "42 moonbox\n");
  });
});

const { "Content-Security-Policy": _, ...ISOLATED_WITHOUT_POLICY } = ISOLATED;

function npm(args, cwd) {
  return execFileSync("npm", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}

function esbuild(app, entry, output, ...options) {
  const program = join(js, "node_modules/esbuild/bin/esbuild");
  const printed = execFileSync(program, [entry, "--bundle", `--outfile=${output}`, "--log-level=warning", ...options], { cwd: app, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  assert.equal(printed, "");
}

/** What the page tells: that of a folder, or the one at an address. */
async function toldBy(folder, address = "/", { policy, tell = () => globalThis.told } = {}) {
  const headers = policy === undefined ? ISOLATED : { ...ISOLATED, "Content-Security-Policy": policy };
  const inFolder = (path) => join(folder, path === "/" ? "index.html" : path);
  const { page, close } = await openPage(address, { headers, find: inFolder });
  try {
    await page.waitForFunction(() => globalThis.told !== undefined || globalThis.driverReady === true);
    return await page.evaluate(tell);
  } finally {
    await close();
  }
}
