; grammar: tree_sitter_bash.language
; language: Bash
(function_definition name: (word) @name) @function
(program (variable_assignment name: (variable_name) @name) @constant)
(program (declaration_command (variable_assignment name: (variable_name) @name)) @constant)

(command_name (word) @reference)
