/** Builds with webpack and no settings: node webpack.mjs FOLDER ENTRY TARGET OUTPUT */

import { join } from "node:path";
import webpack from "webpack";

const [folder, entry, target, output] = process.argv.slice(2);
const compiler = webpack({ mode: "production", target, context: folder, entry: join(folder, entry), output: { path: join(folder, output), filename: entry } });
compiler.run((problem, stats) => {
  const { errors = [], warnings = [] } = stats?.toJson({ all: false, errors: true, warnings: true }) ?? {};
  const wrong = [...errors, ...warnings.filter((each) => !/size limit|performance/.test(each.message))];
  if (problem || wrong.length > 0) console.error(problem ?? wrong.map((each) => each.message).join("\n"));
  process.exitCode = problem || wrong.length > 0 ? 1 : 0;
  compiler.close(() => undefined);
});
