; language: TypeScript
; grammar: tree_sitter_typescript.language_typescript
; inherits: ecmascript
(public_field_definition name: (property_identifier) @name value: (arrow_function)) @function
(abstract_class_declaration name: (type_identifier) @name) @class
(interface_declaration name: (type_identifier) @name) @class
(type_alias_declaration name: (type_identifier) @name) @class
(enum_declaration name: (identifier) @name) @class
(internal_module name: (_) @name) @class
(function_signature name: (identifier) @name) @function

(extends_clause value: (identifier) @reference)
(type_annotation (type_identifier) @reference)
(type_arguments (type_identifier) @reference)
(generic_type name: (type_identifier) @reference)
(union_type (type_identifier) @reference)
(extends_type_clause (type_identifier) @reference)
(implements_clause (type_identifier) @reference)
