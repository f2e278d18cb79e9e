"""Lua's syntax: words, a parser that follows the reference step by step, and the tree that it makes.

Ours and not a grammar library's, because hints need what only such a parser knows: the word at which Lua itself stops,
what it expected there, and which blocks and brackets are open. It needs no tree for that; scripts that are Lua get one.
"""
