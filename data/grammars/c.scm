; grammar: tree_sitter_c.language
; What C and C++ share.
(function_definition declarator: [
    (function_declarator declarator: (identifier) @name)
    (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))
    (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name)))
]) @function
(declaration declarator: [
    (function_declarator declarator: (identifier) @name)
    (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))
    (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name)))
]) @function
(preproc_function_def name: (identifier) @name) @function
(struct_specifier name: (type_identifier) @name body: (_)) @class
(union_specifier name: (type_identifier) @name body: (_)) @class
(enum_specifier name: (type_identifier) @name body: (_)) @class
(type_definition type: (struct_specifier !name) declarator: (type_identifier) @name) @class
(type_definition type: (union_specifier !name) declarator: (type_identifier) @name) @class
(type_definition type: (enum_specifier !name) declarator: (type_identifier) @name) @class
(type_definition
    type: [(primitive_type) (sized_type_specifier) (type_identifier)]
    declarator: [(type_identifier) @name (pointer_declarator declarator: (type_identifier) @name)]) @class
(type_definition type: (struct_specifier name: (_)) declarator: (pointer_declarator declarator: (type_identifier) @name)) @constant
(type_definition type: (struct_specifier name: (_)) declarator: (type_identifier) @name) @constant
(type_definition type: (enum_specifier name: (_)) declarator: (type_identifier) @name) @constant
(type_definition declarator: (function_declarator
    declarator: (parenthesized_declarator (pointer_declarator declarator: (type_identifier) @name)))) @class
(preproc_def name: (identifier) @name) @constant
(enumerator name: (identifier) @name) @constant
(translation_unit (declaration declarator: (init_declarator declarator: (identifier) @name)) @constant)

(call_expression function: (identifier) @reference)
(call_expression function: (field_expression field: (field_identifier) @reference))
(type_identifier) @reference
