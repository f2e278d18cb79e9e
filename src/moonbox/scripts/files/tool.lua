-- A tool script defines one tool. Try it:
--   moonbox tool test tools/@NAME@.lua --param name=moon
--
-- It runs in the sandbox: no files, no network, no environment, unless moonbox.toml grants them:
--   [tools.script.@NAME@]
--   path = "tools/@NAME@.lua"
--   http = ["api.example.com"]     -- http.get("https://api.example.com/…")
--   env = ["MY_API_KEY"]           -- env.get("MY_API_KEY"), secret("MY_API_KEY")
--   greeting = "Hello"             -- every other key is in context.config

tool = {
  name = "@NAME@",
  description = "Greets somebody. The first sentence is what models see in the catalog.",
  version = "0.1.0",
  parameters = {
    { name = "name", type = "string", required = true, description = "Whom to greet." },
    { name = "times", type = "integer", default = 1, minimum = 1, maximum = 10, description = "How often." },
  },
}

-- params has been checked against the parameters, defaults filled in.
-- context.config holds the keys from moonbox.toml; context.search(query) searches your documents.
function tool.execute(params, context)
  local greeting = context.config.greeting or "Hello"
  local lines = {}
  for i = 1, params.times do
    lines[i] = greeting .. ", " .. params.name .. "!"
  end
  return { text = table.concat(lines, " "), count = #lines }
end
