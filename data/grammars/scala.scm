; grammar: tree_sitter_scala.language
(class_definition name: (identifier) @name) @class
(trait_definition name: (identifier) @name) @class
(object_definition name: (identifier) @name) @class
(package_object name: (identifier) @name) @class
(enum_definition name: (identifier) @name) @class
(function_definition name: (_) @name) @function
(function_declaration name: (_) @name) @function
(given_definition name: (identifier) @name) @function
(simple_enum_case name: (identifier) @name) @constant
(full_enum_case name: (identifier) @name) @constant
(type_definition name: (type_identifier) @name) @constant
(template_body (val_definition pattern: (identifier) @name) @constant)
(template_body (val_declaration name: (identifier) @name) @constant)
(compilation_unit (val_definition pattern: (identifier) @name) @constant)

(call_expression function: [(identifier) @reference (field_expression field: (identifier) @reference)])
(generic_function function: [(identifier) @reference (field_expression field: (identifier) @reference)])
(infix_expression operator: (identifier) @reference)
(type_identifier) @reference
