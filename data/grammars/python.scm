; grammar: tree_sitter_python.language
(class_definition name: (identifier) @name) @class
(function_definition name: (identifier) @name) @function
(module (expression_statement (assignment left: (identifier) @name) @constant))
(class_definition body: (block (expression_statement (assignment left: (identifier) @name) @constant)))

(call function: (identifier) @reference)
(call function: (attribute attribute: (identifier) @reference))
(decorator (identifier) @reference)
(decorator (attribute attribute: (identifier) @reference))
(class_definition superclasses: (argument_list (identifier) @reference))
(class_definition superclasses: (argument_list (attribute attribute: (identifier) @reference)))
(import_from_statement name: (dotted_name (identifier) @reference))
(import_from_statement name: (aliased_import name: (dotted_name (identifier) @reference)))
(type (identifier) @reference)
(argument_list (identifier) @reference)
(except_clause (identifier) @reference)
(raise_statement (identifier) @reference)
