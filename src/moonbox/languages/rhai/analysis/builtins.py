"""What the compiler knows of the functions that the runtime has."""

from __future__ import annotations

from moonbox.languages.rhai.syntax.tokens import words

__all__ = ["CHANGING", "PURE", "STRING_LIBRARY"]

PURE = frozenset(
    words(
        "len is_empty contains get keys values map filter find find_map some all index_of reduce reduce_rev extract "
        "zip order order_by order_desc starts_with ends_with sub_string to_upper to_lower split_rev to_string to_debug "
        "to_json to_int to_float to_chars chars bytes abs sign floor ceiling round int fraction sqrt exp ln log sin "
        "cos tan asin acos atan sinh cosh tanh asinh acosh atanh hypot to_degrees to_radians min max is_nan is_finite "
        "is_infinite to_hex to_octal to_binary is_odd is_even is_zero type_of print debug parse_int parse_float "
        "parse_json range curry is_shared is_anonymous name elapsed get_bit get_bits bits as_string to_array to_blob "
        "parse_le_int parse_be_int parse_le_float parse_be_float Fn is_def_var is_def_fn exit parallel parallel_settle"
    )
)
"""Functions and methods that leave their first argument as it is."""

CHANGING = frozenset(
    words(
        "push pop shift insert remove append splice split truncate chop pad reverse sort sort_by sort_desc dedup drain "
        "retain for_each clear set replace trim crop make_upper make_lower mixin fill_with set_bit set_bits write_le "
        "write_be write_ascii write_utf8"
    )
)
"""Methods that change what they are called on, and leave it of the same type."""

STRING_LIBRARY = frozenset(
    words("byte char dump find format gmatch gsub len lower match pack packsize rep reverse sub unpack upper")
)
"""Properties that Lua itself would find in a string."""
