; language: PHP
; grammar: tree_sitter_php.language_php
; parsed: whole
(class_declaration name: (name) @name) @class
(interface_declaration name: (name) @name) @class
(trait_declaration name: (name) @name) @class
(enum_declaration name: (name) @name) @class
(function_definition name: (name) @name) @function
(method_declaration name: (name) @name) @function
(const_element (name) @name) @constant
(property_element name: (variable_name (name) @name)) @constant
(enum_case name: (name) @name) @constant

(function_call_expression function: [(name) @reference (qualified_name (name) @reference)])
(member_call_expression name: (name) @reference)
(nullsafe_member_call_expression name: (name) @reference)
(scoped_call_expression name: (name) @reference)
(scoped_call_expression scope: [(name) @reference (qualified_name (name) @reference)])
(class_constant_access_expression . [(name) @reference (qualified_name (name) @reference)])
(object_creation_expression [(name) @reference (qualified_name (name) @reference)])
(named_type [(name) @reference (qualified_name (name) @reference)])
(base_clause [(name) @reference (qualified_name (name) @reference)])
(class_interface_clause [(name) @reference (qualified_name (name) @reference)])
(use_declaration [(name) @reference (qualified_name (name) @reference)])
(namespace_use_clause [(name) @reference (qualified_name (name) @reference)])
(attribute [(name) @reference (qualified_name (name) @reference)])
