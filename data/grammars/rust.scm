; grammar: tree_sitter_rust.language
(function_item name: (identifier) @name) @function
(function_signature_item name: (identifier) @name) @function
(macro_definition name: (identifier) @name) @function
(struct_item name: (type_identifier) @name) @class
(enum_item name: (type_identifier) @name) @class
(union_item name: (type_identifier) @name) @class
(trait_item name: (type_identifier) @name) @class
(type_item name: (type_identifier) @name) @class
(mod_item name: (identifier) @name body: (_)) @class
(impl_item type: [
    (type_identifier) @name
    (generic_type type: (type_identifier) @name)
    (scoped_type_identifier name: (type_identifier) @name)
    (reference_type type: (type_identifier) @name)
    (reference_type type: (generic_type type: (type_identifier) @name))
]) @class
(const_item name: (identifier) @name) @constant
(static_item name: (identifier) @name) @constant
(enum_variant name: (identifier) @name) @constant

(call_expression function: [
    (identifier) @reference
    (field_expression field: (field_identifier) @reference)
    (scoped_identifier name: (identifier) @reference)
    (generic_function function: (identifier) @reference)
    (generic_function function: (scoped_identifier name: (identifier) @reference))
    (generic_function function: (field_expression field: (field_identifier) @reference))
])
(macro_invocation macro: [(identifier) @reference (scoped_identifier name: (identifier) @reference)])
(type_identifier) @reference
(use_declaration argument: [(identifier) @reference (scoped_identifier name: (identifier) @reference)])
(use_list [(identifier) @reference (scoped_identifier name: (identifier) @reference)])
(use_as_clause path: [(identifier) @reference (scoped_identifier name: (identifier) @reference)])
