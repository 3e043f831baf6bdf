; grammar: tree_sitter_ruby.language
(class name: [(constant) (scope_resolution)] @name) @class
(module name: [(constant) (scope_resolution)] @name) @class
(method name: (_) @name) @function
(singleton_method name: (_) @name) @function
(assignment left: (constant) @name) @constant
(call method: (identifier) @tester arguments: (argument_list . [(string) (constant) (scope_resolution)] @name) block: (_)) @test

(call method: [(identifier) (constant)] @reference)
(constant) @reference
