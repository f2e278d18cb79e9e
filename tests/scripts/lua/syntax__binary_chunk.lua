-- error: syntax
LuaS