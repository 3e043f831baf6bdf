; language: JavaScript
; grammar: tree_sitter_javascript.language
; inherits: ecmascript jsx
(field_definition property: (property_identifier) @name value: (arrow_function)) @function

(class_heritage (identifier) @reference)
