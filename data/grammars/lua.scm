; grammar: tree_sitter_lua.language
(function_declaration name: (identifier) @name) @function
(function_declaration name: (dot_index_expression table: (_) @owner field: (identifier) @name)) @function
(function_declaration name: (method_index_expression table: (_) @owner method: (identifier) @name)) @function
(assignment_statement
    (variable_list . name: (identifier) @name)
    (expression_list . value: (function_definition))) @function
(assignment_statement
    (variable_list . name: (dot_index_expression table: (_) @owner field: (identifier) @name))
    (expression_list . value: (function_definition))) @function
(field name: (identifier) @name value: (function_definition)) @function
(chunk (variable_declaration (assignment_statement (variable_list name: (identifier) @name))) @constant)
(chunk (assignment_statement (variable_list name: [(identifier) @name (dot_index_expression field: (identifier) @name)])) @constant)
(function_call name: (identifier) @tester arguments: (arguments . (string) @name . (function_definition))) @test

(function_call name: [
    (identifier) @reference
    (dot_index_expression field: (identifier) @reference)
    (method_index_expression method: (identifier) @reference)
])
