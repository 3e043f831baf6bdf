; grammar: tree_sitter_haskell.language
(data_type name: (name) @name) @class
(newtype name: (name) @name) @class
(class name: (name) @name) @class
(type_synonym name: (name) @name) @constant
(type_family name: (name) @name) @class
(declarations [(function name: (variable) @name) (bind name: (variable) @name)] @function)
(declarations (function (infix operator: (operator) @name)) @function)
(class_declarations [(function name: (variable) @name) (bind name: (variable) @name)] @function)
(instance_declarations [(function name: (variable) @name) (bind name: (variable) @name)] @function)
(class_declarations (signature name: (variable) @name) @constant)
(data_constructor [(prefix name: (constructor) @name) (record name: (constructor) @name)]) @constant
(gadt_constructor name: (constructor) @name) @constant
(newtype_constructor name: (constructor) @name) @constant
(field name: (field_name (variable) @name)) @constant

(apply function: (variable) @reference)
(qualified id: (variable) @reference)
(infix left_operand: (variable) @reference)
(infix right_operand: (variable) @reference)
(constructor) @reference
(name) @reference
