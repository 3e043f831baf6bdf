; language: C#
; grammar: tree_sitter_c_sharp.language
(class_declaration name: (identifier) @name) @class
(struct_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @class
(enum_declaration name: (identifier) @name) @class
(delegate_declaration name: (identifier) @name) @function
(method_declaration name: (identifier) @name) @function
(constructor_declaration name: (identifier) @name) @function
(destructor_declaration name: (identifier) @name) @function
(property_declaration name: (identifier) @name) @constant
(event_declaration name: (identifier) @name) @constant
(event_field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @constant
(field_declaration (variable_declaration (variable_declarator name: (identifier) @name) @constant))
(enum_member_declaration name: (identifier) @name) @constant

(invocation_expression function: [
    (identifier) @reference
    (generic_name (identifier) @reference)
    (member_access_expression name: [(identifier) @reference (generic_name (identifier) @reference)])
    (conditional_access_expression (member_binding_expression name: (identifier) @reference))
])
(object_creation_expression type: [(identifier) @reference (generic_name (identifier) @reference)])
(base_list [(identifier) @reference (generic_name (identifier) @reference)])
(type_argument_list (identifier) @reference)
(parameter type: [(identifier) @reference (nullable_type type: (identifier) @reference) (generic_name (identifier) @reference)])
(variable_declaration type: [(identifier) @reference (nullable_type type: (identifier) @reference) (generic_name (identifier) @reference)])
(method_declaration returns: [(identifier) @reference (nullable_type type: (identifier) @reference) (generic_name (identifier) @reference)])
(property_declaration type: [(identifier) @reference (nullable_type type: (identifier) @reference) (generic_name (identifier) @reference)])
(attribute name: (identifier) @reference)
