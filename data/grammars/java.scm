; grammar: tree_sitter_java.language
(class_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @class
(enum_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(annotation_type_declaration name: (identifier) @name) @class
(method_declaration name: (identifier) @name) @function
(constructor_declaration name: (identifier) @name) @function
(compact_constructor_declaration name: (identifier) @name) @function
(annotation_type_element_declaration name: (identifier) @name) @function
(field_declaration declarator: (variable_declarator name: (identifier) @name) @constant)
(constant_declaration declarator: (variable_declarator name: (identifier) @name) @constant)
(enum_constant name: (identifier) @name) @constant

(method_invocation name: (identifier) @reference)
(method_reference (identifier) @reference .)
(type_identifier) @reference
(marker_annotation name: (identifier) @reference)
(annotation name: (identifier) @reference)
(import_declaration (scoped_identifier name: (identifier) @reference))
