-- value: "A\tB\nA\u0007é"
return "\65\tB\n\x41\a\u{e9}"
