; language: TypeScript
; grammar: tree_sitter_typescript.language_tsx
; inherits: ecmascript typescript jsx
; Its patterns are those that it inherits.
