; grammar: tree_sitter_kotlin.language
(class_declaration name: (identifier) @name) @class
(object_declaration name: (identifier) @name) @class
(type_alias type: (identifier) @name) @class
(function_declaration name: (identifier) @name) @function
(source_file (property_declaration (variable_declaration (identifier) @name)) @constant)
(class_body (property_declaration (variable_declaration (identifier) @name)) @constant)
(enum_entry (identifier) @name) @constant

(call_expression . (identifier) @reference)
(call_expression . (navigation_expression (identifier) @reference .))
(user_type (identifier) @reference)
(import (qualified_identifier (identifier) @reference .))
