; grammar: tree_sitter_zig.language
(variable_declaration . (identifier) @name [
    (struct_declaration) (enum_declaration) (union_declaration) (opaque_declaration) (error_set_declaration)
]) @class
(function_declaration name: (identifier) @name) @function
(source_file (variable_declaration . (identifier) @name) @constant)
(struct_declaration (variable_declaration . (identifier) @name) @constant)
(enum_declaration (container_field name: (identifier) @name) @constant)
(test_declaration "test" @tester (string) @name) @test

(call_expression function: [(identifier) @reference (field_expression member: (identifier) @reference)])
(struct_initializer (identifier) @reference)
(parameter type: (identifier) @reference)
(pointer_type (identifier) @reference)
(error_union_type ok: (identifier) @reference)
