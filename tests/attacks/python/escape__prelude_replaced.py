# attack: replaces what the prelude defines, for later runs
# prints: "replaced\n"
parallel_map = asyncio = json = None
ToolError = 5
print("replaced")
