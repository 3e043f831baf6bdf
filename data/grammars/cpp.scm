; language: C++
; grammar: tree_sitter_cpp.language
; inherits: c
(class_specifier name: (type_identifier) @name body: (_)) @class
(class_specifier name: (template_type name: (type_identifier) @name) body: (_)) @class
(struct_specifier name: (template_type name: (type_identifier) @name) body: (_)) @class
(alias_declaration name: (type_identifier) @name) @class
(concept_definition name: (identifier) @name) @class
(function_definition declarator: (reference_declarator (function_declarator declarator: (identifier) @name))) @function
(function_definition declarator: [
    (function_declarator declarator: [(field_identifier) (operator_name) (destructor_name)] @name)
    (pointer_declarator declarator: (function_declarator declarator: [(field_identifier) (operator_name)] @name))
    (reference_declarator (function_declarator declarator: [(field_identifier) (operator_name)] @name))
    (operator_cast) @name
]) @function
(field_declaration declarator: [
    (function_declarator declarator: [(field_identifier) (operator_name)] @name)
    (pointer_declarator declarator: (function_declarator declarator: [(field_identifier) (operator_name)] @name))
    (reference_declarator (function_declarator declarator: [(field_identifier) (operator_name)] @name))
]) @function
(declaration declarator: (function_declarator declarator: [(destructor_name) (operator_name)] @name)) @function
(function_definition declarator: [
    (function_declarator declarator: (qualified_identifier) @name)
    (pointer_declarator declarator: (function_declarator declarator: (qualified_identifier) @name))
    (reference_declarator (function_declarator declarator: (qualified_identifier) @name))
]) @function

(call_expression function: (qualified_identifier name: [
    (identifier) @reference
    (template_function name: (identifier) @reference)
    (qualified_identifier name: [(identifier) @reference (template_function name: (identifier) @reference)])
]))
(call_expression function: (template_function name: (identifier) @reference))
(call_expression function: (field_expression field: (template_method name: (field_identifier) @reference)))
