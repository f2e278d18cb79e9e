/** Packs the package, installs it into an empty project, and runs a script there. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const project = mkdtempSync(join(tmpdir(), "moonbox-smoke-"));
const npm = (args, cwd) => execFileSync("npm", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });

try {
  const [{ filename, files }] = JSON.parse(npm(["pack", "--json", "--silent", "--pack-destination", project], root));
  for (const needed of ["dist/index.js", "dist/worker.js", "dist/lua.wasm", "dist/languages.js", "dist/types/index.d.ts", "LICENSE", "README.md"]) {
    if (!files.some((file) => file.path === needed)) throw new Error(`the tarball has no ${needed}`);
  }
  writeFileSync(join(project, "package.json"), '{"name": "smoke", "private": true, "type": "module"}\n');
  npm(["install", "--silent", "--offline", "--no-audit", "--no-fund", join(project, filename)], project);
  writeFileSync(
    join(project, "main.mjs"),
    `import { Sandbox, tool } from "moonbox";
const greet = tool({
  name: "greet",
  parameters: { type: "object", properties: { who: { type: "string" } }, required: ["who"] },
  call: async ({ who }) => "Hello, " + who,
});
const box = new Sandbox({ tools: [greet] });
const run = await box.run("return tools.greet{who = 'you'}, 6 * 7");
await box.close();
if (JSON.stringify(run.unwrap() && run.values) !== '["Hello, you",42]') throw new Error(run.to_json());
console.log("installed and ran:", run.values.join(", "));
`,
  );
  process.stdout.write(execFileSync(process.execPath, ["main.mjs"], { cwd: project, encoding: "utf8" }));
} finally {
  rmSync(project, { recursive: true, force: true });
}
