; grammar: tree_sitter_go.language
(function_declaration name: (identifier) @name) @function
(method_declaration
    receiver: (parameter_list (parameter_declaration type: [
        (type_identifier) @owner
        (generic_type type: (type_identifier) @owner)
        (pointer_type (type_identifier) @owner)
        (pointer_type (generic_type type: (type_identifier) @owner))
    ]))
    name: (field_identifier) @name) @function
(type_spec name: (type_identifier) @name) @class
(type_alias name: (type_identifier) @name) @class
(method_elem name: (field_identifier) @name) @function
(source_file (const_declaration (const_spec (identifier) @name) @constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @constant))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @constant)))

(call_expression function: (identifier) @reference)
(call_expression function: (selector_expression field: (field_identifier) @reference))
(type_identifier) @reference
