"""`match`: a pattern as a condition that assigns what it captures."""

from __future__ import annotations

import ast

from translate.calls import Calls
from translate.scopes import mangled
from translate.signatures import Untranslatable


class Patterns(Calls):
    """Translates patterns."""

    def pattern(self, node: ast.pattern, subject: str) -> str:
        """Whether the subject, a text without effects, fits."""
        match node:
            case ast.MatchValue(value=value):
                return f"$.eq({subject}, {self.value(value)})"
            case ast.MatchSingleton(value=None):
                return f"{subject} == null"
            case ast.MatchSingleton(value=value):
                return f"{subject} === {str(value).lower()}"
            case ast.MatchAs(pattern=None, name=None):
                return "true"
            case ast.MatchAs(pattern=None, name=str(name)):
                return f"({mangled(name)} = {subject}, true)"
            case ast.MatchAs(pattern=inner, name=str(name)) if inner is not None:
                return f"({self.pattern(inner, subject)} && ({mangled(name)} = {subject}, true))"
            case ast.MatchOr(patterns=patterns):
                return f"({' || '.join(self.pattern(each, subject) for each in patterns)})"
            case ast.MatchSequence(patterns=patterns):
                return self._sequence(patterns, subject)
            case ast.MatchClass():
                return self._class_pattern(node, subject)
        raise Untranslatable(node)

    def _sequence(self, patterns: list[ast.pattern], subject: str) -> str:
        stars = [index for index, each in enumerate(patterns) if isinstance(each, ast.MatchStar)]
        count = len(patterns) - len(stars)
        parts = [f"Array.isArray({subject})", f"{subject}.length {'>=' if stars else '==='} {count}"]
        for index, each in enumerate(patterns):
            if isinstance(each, ast.MatchStar):
                if each.name is not None:
                    stop = index - len(patterns) + 1
                    parts.append(
                        f"({mangled(each.name)} = {subject}.slice({index}{f', {stop}' if stop else ''}), true)"
                    )
            elif stars and index > stars[0]:
                parts.append(self._inner(each, f"{subject}.at({index - len(patterns)})"))
            else:
                parts.append(self._inner(each, f"{subject}[{index}]"))
        return f"({' && '.join(part for part in parts if part != 'true')})"

    def _inner(self, node: ast.pattern, text: str) -> str:
        if isinstance(node, ast.MatchAs) and node.pattern is None:
            return self.pattern(node, text)
        name = self.fresh()
        self.scopes_declare(name)
        return f"({name} = {text}, {self.pattern(node, name)})"

    def _class_pattern(self, node: ast.MatchClass, subject: str) -> str:
        written = ast.unparse(node.cls)
        parts = [f"$.isinstance({subject}, {self.value(node.cls)})"]
        known = self.module.resolve_class(written)
        if node.patterns and known is None:  # `str(name)`
            parts.append(self.pattern(node.patterns[0], subject))
        elif known is not None:
            names = [name for name, _ in known.all_fields()]
            parts += [self._inner(each, f"{subject}.{name}") for each, name in zip(node.patterns, names, strict=False)]
        parts += [
            self._inner(each, f"{subject}.{name}") for name, each in zip(node.kwd_attrs, node.kwd_patterns, strict=True)
        ]
        return f"({' && '.join(part for part in parts if part != 'true')})"
