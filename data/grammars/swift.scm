; grammar: tree_sitter_swift.language
(class_declaration name: [(type_identifier) (user_type)] @name) @class
(protocol_declaration name: (type_identifier) @name) @class
(typealias_declaration name: (type_identifier) @name) @class
(function_declaration name: (simple_identifier) @name) @function
(protocol_function_declaration name: (simple_identifier) @name) @function
(init_declaration "init" @name) @function
(source_file (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @constant)
(class_body (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @constant)
(protocol_property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @constant
(enum_entry name: (simple_identifier) @name) @constant

(call_expression . (simple_identifier) @reference)
(call_expression . (navigation_expression suffix: (navigation_suffix suffix: (simple_identifier) @reference)))
(user_type (type_identifier) @reference)
