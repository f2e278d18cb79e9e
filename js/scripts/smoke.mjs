/** Packs the package, installs it into an empty project, resolves its types there, and runs a script. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const project = mkdtempSync(join(tmpdir(), "moonbox-smoke-"));
const npm = (args, cwd) => execFileSync("npm", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });

try {
  const [{ filename, files }] = JSON.parse(npm(["pack", "--json", "--silent", "--pack-destination", project], root));
  for (const needed of ["dist/index.js", "dist/browser.js", "dist/index.js.map", "dist/worker.js", "dist/lua.wasm", "dist/languages.js", "dist/lua.js", "dist/lua-suspendable.js", "dist/rhai.js", "dist/types/index.d.ts", "LICENSE", "README.md"]) {
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
if (JSON.stringify(run.unwrap() && run.values) !== '["Hello, you",42]') throw new Error(run.toJson());
console.log("installed and ran:", run.values.join(", "));
`,
  );
  checkTypes();
  process.stdout.write(execFileSync(process.execPath, ["main.mjs"], { cwd: project, encoding: "utf8" }));
} finally {
  rmSync(project, { recursive: true, force: true });
}

/** TypeScript finds the types, knows them, and notices a wrong one; with both ways of resolving modules. */
function checkTypes() {
  symlinkSync(join(root, "test/apps/node_modules/zod"), join(project, "node_modules/zod"));
  writeFileSync(
    join(project, "types.ts"),
    `import { z } from "zod";
import { CodeMode, Limits, Sandbox, tool, type Decision, type Run, type ToolCall } from "moonbox";
const approve = async (call: ToolCall): Promise<Decision> => (call.tool === "pay" ? { kind: "deny", reason: "no" } : "always");
const box = new Sandbox({ tools: [tool({ name: "one", call: () => 1, hints: { risk: "low" } })], limits: Limits.quick({ timeout: 1 }), approve });
const run: Run = await (await box.repl()).run("return 1", { inputs: { rows: [1] } });
const text: string = run.forModel();
const bytes: Uint8Array = await (await box.restore(new Uint8Array())).snapshot();
const kind: "syntax" | string | undefined = run.error?.kind;
const mode = new CodeMode(box);
const name: string = mode.definitions()[0]!.function.name + mode.definitions("anthropic")[0]!.input_schema.type;
const book = z.object({ seats: z.int(), day: z.iso.date().transform((text) => new Date(text)) });
tool({ name: "book", parameters: book, call: ({ seats, day }) => seats + day.getTime() });
tool({ name: "any", parameters: { type: "object" }, call: ({ whatever }) => whatever });
// @ts-expect-error the schema has no such field
tool({ name: "wrong", parameters: book, call: ({ seat }) => seat });
// @ts-expect-error there is no such language
new Sandbox({ language: "python" });
// @ts-expect-error Anthropic's definitions have no function
mode.definitions("anthropic")[0]!.function;
// @ts-expect-error there is no such option
new Sandbox({ limit: {} });
// @ts-expect-error a policy is one of three words
tool({ name: "two", call: () => 2, policy: "never" });
export { bytes, kind, name, text };
`,
  );
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const options = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom", "types.ts"];
  for (const [module, resolution] of [["nodenext", "nodenext"], ["esnext", "bundler"]]) {
    execFileSync(process.execPath, [compiler, ...options, "--module", module, "--moduleResolution", resolution], { cwd: project, stdio: "inherit" });
  }
  console.log("types resolve");
}
