/** The story that every app tells: tools, a limit, an error with its name. */

import { Sandbox, tool, version } from "moonbox";

export async function story() {
  const greet = tool({
    name: "greet",
    parameters: { type: "object", properties: { who: { type: "string" } }, required: ["who"] },
    call: async ({ who }) => `Hello, ${who}`,
  });
  const box = new Sandbox({ tools: [greet], limits: { timeout: 2 } });
  try {
    const run = await box.run("return tools.greet{who = 'you'}, 6 * 7");
    const endless = await box.run("while true do end", { timeout: 0.3 });
    let problem;
    try {
      tool({ name: "wrong", parameters: { type: "string" }, call: () => 1 });
    } catch (thrown) {
      problem = thrown.name;
    }
    return [version, run.values ?? run.error, endless.error?.limit, problem];
  } finally {
    await box.close();
  }
}
