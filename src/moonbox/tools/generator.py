"""Generator: pydantic's JSON Schemas, made to say what scripts may give and what they get."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from moonbox.schema.coercion import OTHER_NAMES


class Generator(GenerateJsonSchema):
    """Schemas without titles.

    Of parameters they hold all names of fields (OTHER_NAMES); of results they tell what `moonbox.values` makes of them:
    models are dumped as JSON, in which durations and decimals are text, and all fields are there.
    """

    _models = 0
    """How many models the part lies in."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        if self.mode == "serialization" and field["type"] != "typed-dict-field":
            return not field.get("serialization_exclude_if")
        return super().field_is_required(field, total)

    def timedelta_schema(self, schema: Any) -> dict[str, Any]:
        text = {"type": "string", "format": "duration"}
        if self.mode == "serialization":
            return text if self._models else {"type": "number"}
        return {"anyOf": [{"type": "number"}, text]}

    def decimal_schema(self, schema: Any) -> dict[str, Any]:
        if self.mode == "serialization":
            return {"type": "string"} if self._models else {"anyOf": [{"type": "number"}, {"type": "string"}]}
        return dict(super().decimal_schema(schema))

    def set_schema(self, schema: Any) -> dict[str, Any]:
        return self._with_duplicates(super().set_schema(schema))

    def frozenset_schema(self, schema: Any) -> dict[str, Any]:
        return self._with_duplicates(super().frozenset_schema(schema))

    def _with_duplicates(self, made: Any) -> dict[str, Any]:
        """A set takes the same value twice."""
        kept = () if self.mode == "serialization" else ("uniqueItems",)
        return {key: value for key, value in made.items() if key not in kept}

    def named_tuple_schema(self, schema: Any) -> dict[str, Any]:
        return self._also_by_name(super().named_tuple_schema(schema), schema["fields"])

    def call_schema(self, schema: Any) -> dict[str, Any]:  # a NamedTuple's in pydantic before 2.14
        return self._also_by_name(super().call_schema(schema), schema["arguments_schema"]["arguments_schema"])

    def _also_by_name(self, made: Any, fields: Any) -> dict[str, Any]:
        """A NamedTuple is its values in order; it may also be given as an object."""
        if self.mode == "serialization" or "prefixItems" not in made:
            return dict(made)
        names = [item["name"] for item in fields]
        named = {"type": "object", "properties": dict(zip(names, made["prefixItems"], strict=True))}
        required = {"required": names[: made["minItems"]]} if "minItems" in made else {}
        return {"anyOf": [dict(made), {**named, **required, "additionalProperties": False}]}

    def model_schema(self, schema: Any) -> dict[str, Any]:
        self._models += 1
        try:
            made = dict(super().model_schema(schema))
        finally:
            self._models -= 1
        return self._with_names(made, schema)

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        return self._with_names(dict(super().dataclass_schema(schema)), schema)

    def _with_names(self, made: dict[str, Any], schema: Any) -> dict[str, Any]:
        """With the other names that the fields of a model may have; open where a field is read from inside others."""
        if self.mode == "serialization":
            return made
        config, fields = schema.get("config") or {}, schema["schema"]
        while "fields" not in fields and "schema" in fields:
            fields = fields["schema"]
        listed = fields.get("fields", {})
        pairs = listed.items() if isinstance(listed, dict) else [(item["name"], item) for item in listed]
        by_name = any(config.get(option) for option in ("populate_by_name", "validate_by_name"))
        names: dict[str, str] = {}
        for name, item in pairs:
            aliases, has_paths = _aliases(item.get("validation_alias"))
            if has_paths:
                made.setdefault("additionalProperties", True)
            accepted = [*aliases, name] if by_name else aliases
            shown = next((option for option in accepted if option in made.get("properties", {})), None)
            names |= {option: shown for option in accepted if shown is not None and option != shown}
        return {**made, OTHER_NAMES: names} if names else made


def _aliases(given: Any) -> tuple[list[str], bool]:
    """The names by which a field is given, and whether it may also be given by a path into another."""
    if given is None or isinstance(given, str):
        return [given] if given else [], False
    choices = given if given and isinstance(given[0], list) else [given]
    return [choice[0] for choice in choices if len(choice) == 1], any(len(choice) > 1 for choice in choices)
