"""Lua's syntax: words, and a parser that follows the reference step by step and makes the tree of a script.

Ours and not a grammar library's, because hints need what only such a parser knows: the word at which Lua itself stops,
what it expected there, and which blocks and brackets are open.
"""
